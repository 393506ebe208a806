// A connection to an orchestrator, from the contract as it stands in protos/.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';
import protoLoader from '@grpc/proto-loader';

const PROTOS = fileURLToPath(new URL('../../protos', import.meta.url));
const CALL_SECONDS = 30;
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024; // as the services have it; grpc-js takes 4 MiB where nobody says more
const RETRIED = new Set([grpc.status.UNAVAILABLE, grpc.status.CANCELLED, grpc.status.UNKNOWN]);

const definition = protoLoader.loadSync('parley/v1/orchestrator.proto', {
  includeDirs: [PROTOS],
  keepCase: true,
  longs: String,
  enums: String,
  defaults: true,
  oneofs: true,
});
const { OrchestratorService } = grpc.loadPackageDefinition(definition).parley.v1;

/** Returns the calls of an orchestrator. PARLEY_TOKEN says who calls, PARLEY_CA names the authority's file. */
export function connected(target) {
  const { PARLEY_CA: ca, PARLEY_TOKEN: token } = process.env;
  const credentials = ca ? grpc.credentials.createSsl(readFileSync(ca)) : grpc.credentials.createInsecure();
  const stub = new OrchestratorService(target, credentials, {
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
  });
  const metadata = new grpc.Metadata();
  if (token) metadata.set('authorization', `Bearer ${token}`);

  return {
    /** Answers one call; it fails with a status of gRPC's. */
    call(method, request) {
      const deadline = Date.now() + CALL_SECONDS * 1000;
      return new Promise((resolve, reject) => {
        stub[method](request, metadata, { deadline }, (error, answer) => (error ? reject(error) : resolve(answer)));
      });
    },
    /** The messages of a watch, as they come. */
    watch: (request) => stub.WatchDebate(request, metadata),
    /** Whether the same may work when it is asked for again. */
    mayComeBack: (error) => RETRIED.has(error.code),
    close: () => stub.close(),
  };
}
