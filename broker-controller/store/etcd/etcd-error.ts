/** What a failed call to etcd means: whether it may have happened, and what a client of the API is answered. */
import { ApiError } from '../../../api/api-error.ts'
import { StoreFullError } from '../store.ts'

/** Codes of gRPC (grpc/grpc, doc/statuscodes.md) that etcd and the connection to it answer with. */
export const grpcCode = {
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  outOfRange: 11,
  unavailable: 14,
  unauthenticated: 16,
} as const

/** `etcdserver: no leader`: the member refused the call before it proposed anything (etcd, server/v3rpc/interceptor.go). */
const withoutLeader = 'etcdserver: no leader'
/** `etcdserver: mvcc: database space exceeded` (etcd, api/v3rpc/rpctypes/error.go). */
const withoutSpace = /database space exceeded/
/** `etcdserver: too many operations in txn request`: more than --max-txn-ops (etcd, server/v3rpc/key.go). */
const tooManyOperations = /too many operations in txn/
/**
 * Text of gRPC in etcd, for a request beyond --max-request-bytes and 512 KiB; smaller ones etcd itself rejects (etcd,
 * api/v3rpc/grpc.go).
 */
const tooLarge = /received message larger than max/

export class EtcdError extends Error {
  override readonly name = 'EtcdError'
  readonly code: number
  /** The call has certainly not taken effect, and will not. */
  readonly refused: boolean

  /** `sent` false: the request never left this process. */
  constructor(code: number, message: string, { sent = true }: { readonly sent?: boolean } = {}) {
    super(message)
    this.code = code
    this.refused = !sent || message.includes(withoutLeader) || answersOfEtcd.includes(code)
  }
}

/** Codes that etcd answers with after it looked at the request, and before it proposed it. */
const answersOfEtcd: readonly number[] = [
  grpcCode.invalidArgument,
  grpcCode.notFound,
  grpcCode.permissionDenied,
  grpcCode.resourceExhausted,
  grpcCode.outOfRange,
  grpcCode.unauthenticated,
]

/** No connection, or no leader: nothing was written, and the same call may succeed in a moment. */
export function isAbsent(error: unknown): error is EtcdError {
  return error instanceof EtcdError && error.refused && error.code === grpcCode.unavailable
}

/** Another member may answer: this one is gone, hangs, or has no leader. */
export function maySucceedElsewhere(error: unknown): boolean {
  return error instanceof EtcdError && (error.code === grpcCode.unavailable || error.code === grpcCode.deadlineExceeded)
}

/** The range or the watch begins at a revision that was compacted. */
export function isCompacted(error: unknown): boolean {
  return error instanceof EtcdError && error.code === grpcCode.outOfRange
}

/** It refuses every write that takes space, from all its clients. Deletions happen. */
export function isWithoutSpace(error: unknown): boolean {
  return error instanceof EtcdError && withoutSpace.test(error.message)
}

/** A transaction has more operations than this etcd takes: a smaller one may succeed. */
export function hasTooManyOperations(error: unknown): boolean {
  return error instanceof EtcdError && tooManyOperations.test(error.message)
}

/** What a write that failed is answered with. Timeout: it may have happened, or may still happen; all others: it has not. */
export function answerOf(error: unknown): unknown {
  if (!(error instanceof EtcdError)) return error
  const options = { cause: error }
  if (!error.refused) {
    return new ApiError('Timeout', `etcd did not answer: the write may have happened (${error.message})`, {}, options)
  }
  if (isWithoutSpace(error)) {
    const remedy = 'compact and defragment it, then disarm the alarm (etcdctl defrag, etcdctl alarm disarm)'
    return new StoreFullError(`etcd has no space left: ${remedy}`, options)
  }
  if (tooLarge.test(error.message)) {
    return new ApiError('RequestEntityTooLarge', error.message, undefined, options)
  }
  switch (error.code) {
    case grpcCode.invalidArgument:
      return new ApiError('RequestEntityTooLarge', error.message, undefined, options)
    case grpcCode.permissionDenied:
    case grpcCode.unauthenticated:
      return new ApiError('InternalError', `etcd refuses the client certificate: ${error.message}`, undefined, options)
    default:
      return new ApiError(
        'ServiceUnavailable',
        `No answer from etcd: ${error.message}`,
        { retryAfterSeconds: 1 },
        options,
      )
  }
}
