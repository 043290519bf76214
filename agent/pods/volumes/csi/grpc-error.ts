/** The status of a call of a CSI driver that failed. */

/** grpc/grpc, doc/statuscodes.md. */
export const grpcCodes = {
  ok: 0,
  canceled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  internal: 13,
  unavailable: 14,
} as const

const names = [
  ...['OK', 'Canceled', 'Unknown', 'InvalidArgument', 'DeadlineExceeded', 'NotFound', 'AlreadyExists'],
  ...['PermissionDenied', 'ResourceExhausted', 'FailedPrecondition', 'Aborted', 'OutOfRange', 'Unimplemented'],
  ...['Internal', 'Unavailable', 'DataLoss', 'Unauthenticated'],
]

/** Its message reads as that of Kubernetes' client: people search for it. */
export class GrpcError extends Error {
  override readonly name = 'GrpcError'
  readonly code: number

  constructor(code: number, message: string) {
    super(`rpc error: code = ${names[code] ?? `Code(${code})`} desc = ${message}`)
    this.code = code
  }
}

const uncertain: readonly number[] = [
  ...[grpcCodes.canceled, grpcCodes.deadlineExceeded, grpcCodes.unavailable],
  ...[grpcCodes.resourceExhausted, grpcCodes.aborted],
]

/** The driver does not work on it any more. After another error the volume may be mounted, now or later (isFinalError in pkg/volume/csi/csi_client.go). */
export function isFinalError(error: unknown): boolean {
  return error instanceof GrpcError && !uncertain.includes(error.code)
}
