// Sign-in at an OpenID provider, by a key or token, or by the link of `parley up` and `parley open`.

import { send } from "./api.js";
import { h, replace } from "./dom.js";

/** @param {import("./app.js").Page} page */
export async function open({ main, signal, setTitle, go }) {
  setTitle("Sign in");
  const next = new URLSearchParams(location.search).get("next") ?? "/";
  const target = next.startsWith("/") && !next.startsWith("//") ? next : "/";
  const problem = h("p", { class: "failure", role: "alert", hidden: true });

  /** @param {Record<string, string>} credentials */
  async function signIn(credentials) {
    problem.hidden = true;
    try {
      await send("/console/session", credentials, signal);
      go(target);
    } catch (error) {
      if (signal.aborted) return;
      replace(problem, error instanceof Error ? error.message : String(error));
      problem.hidden = false;
    }
  }

  async function showProvider() {
    const answer = await fetch("/console/oidc", { signal }).catch(() => null);
    if (!answer?.ok) return;
    const start = () => location.assign(`/console/oidc/start?next=${encodeURIComponent(target)}`);
    const button = h("button", { type: "button", class: "primary", onclick: start }, `Sign in at ${(await answer.json()).name}`);
    replace(provider, button, h("p", { class: "hint" }, "or with a key:"));
    if (!key.value) button.focus();
  }

  const key = /** @type {HTMLInputElement} */ (
    h("input", { id: "key", type: "password", autocomplete: "current-password", required: true })
  );
  const tenant = /** @type {HTMLInputElement} */ (h("input", { id: "tenant", autocomplete: "organization" }));
  const provider = h("div", { class: "narrow" });
  replace(
    main,
    h("h1", {}, "Sign in"),
    provider,
    h(
      "form",
      {
        class: "narrow",
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          signIn({ key: key.value, tenant: tenant.value });
        },
      },
      h("label", { for: "key" }, "API key or token"),
      key,
      h("label", { for: "tenant" }, "Tenant, if your key has several"),
      tenant,
      h("button", { type: "submit", class: "primary" }, "Sign in"),
      problem,
    ),
    h("p", { class: "hint" }, "On your own machine, ", h("code", {}, "parley open"), " signs you in without a key."),
  );
  key.focus();
  showProvider();
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (ticket) {
    history.replaceState(null, "", location.pathname + location.search);
    await signIn({ ticket });
  }
}
