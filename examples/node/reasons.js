// What a failure says for programs: its status carries google.rpc.Status with google.rpc.ErrorInfo.
import protobuf from 'protobufjs';

const PROTO = `
  syntax = "proto3";
  package google.rpc;
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }
`;
const { root } = protobuf.parse(PROTO, { keepCase: true });
const Status = root.lookupType('google.rpc.Status');
const ErrorInfo = root.lookupType('google.rpc.ErrorInfo');

/** Returns the reason of a failure, such as DEBATE_NOT_FOUND; the code's number where the status carries none. */
export function reasonOf(error) {
  const [bytes] = error.metadata?.get('grpc-status-details-bin') ?? [];
  const details = bytes ? Status.decode(bytes).details : [];
  const info = details.find((each) => each.type_url.endsWith('/google.rpc.ErrorInfo'));
  return info ? ErrorInfo.decode(info.value).reason : String(error.code ?? error.name);
}
