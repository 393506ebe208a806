"""Checks of what installs Parley, without a cluster: the chart, the images, the local cluster. `make check-deploy` runs them."""
