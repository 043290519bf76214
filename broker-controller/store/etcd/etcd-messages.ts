/**
 * The calls of etcd's API v3 that the store makes, and the fields of their messages that it uses. Numbers and names are those of
 * `rpc.proto` and `kv.proto` of etcd 3.4; the later versions keep them.
 */
import {
  boolValue,
  bytesValue,
  type Codec,
  id64,
  int64,
  messageCodec,
  messageList,
  oneMessage,
  textValue,
} from '../../../daemon/protobuf/protobuf-codec.ts'

export type Method<Out, In> = {
  readonly path: string
  readonly request: Codec<unknown, In>
  readonly answer: Codec<Out, never>
}

const header = messageCodec({ revision: [3, int64] })
const keyValue = messageCodec({
  key: [1, bytesValue],
  createRevision: [2, int64],
  modRevision: [3, int64],
  version: [4, int64],
  value: [5, bytesValue],
  lease: [6, id64],
})

/** `limit` 0: all. `revision` 0: the latest. Linearizable: it sees every write that was answered before. */
const rangeRequest = messageCodec({
  key: [1, bytesValue],
  rangeEnd: [2, bytesValue],
  limit: [3, int64],
  revision: [4, int64],
  keysOnly: [8, boolValue],
  countOnly: [9, boolValue],
})
const rangeResponse = messageCodec({
  header: [1, oneMessage(header)],
  kvs: [2, messageList(keyValue)],
  more: [3, boolValue],
  count: [4, int64],
})
const putRequest = messageCodec({ key: [1, bytesValue], value: [2, bytesValue], lease: [3, id64] })
const deleteRangeRequest = messageCodec({ key: [1, bytesValue], rangeEnd: [2, bytesValue] })

export const compareTarget = { create: 1, mod: 2 } as const
/** The result compared with is EQUAL. A revision of 0, which is left out: there is no such key. */
const compare = messageCodec({
  target: [2, int64],
  key: [3, bytesValue],
  createRevision: [5, int64],
  modRevision: [6, int64],
})
const operation = messageCodec({
  range: [1, oneMessage(rangeRequest)],
  put: [2, oneMessage(putRequest)],
  deleteRange: [3, oneMessage(deleteRangeRequest)],
})
const txnRequest = messageCodec({
  compare: [1, messageList(compare)],
  success: [2, messageList(operation)],
  failure: [3, messageList(operation)],
})
const operationResponse = messageCodec({ range: [1, oneMessage(rangeResponse)] })
const txnResponse = messageCodec({
  header: [1, oneMessage(header)],
  succeeded: [2, boolValue],
  responses: [3, messageList(operationResponse)],
})

const watchCreateRequest = messageCodec({
  key: [1, bytesValue],
  rangeEnd: [2, bytesValue],
  startRevision: [3, int64],
  progressNotify: [4, boolValue],
  fragment: [8, boolValue],
})
const watchRequest = messageCodec({ create: [1, oneMessage(watchCreateRequest)] })
export const eventType = { put: 0, delete: 1 } as const
const event = messageCodec({ type: [1, int64], kv: [2, oneMessage(keyValue)] })
const watchResponse = messageCodec({
  header: [1, oneMessage(header)],
  created: [3, boolValue],
  canceled: [4, boolValue],
  compactRevision: [5, int64],
  cancelReason: [6, textValue],
  fragment: [7, boolValue],
  events: [11, messageList(event)],
})

const leaseGrantRequest = messageCodec({ ttl: [1, int64] })
const leaseGrantResponse = messageCodec({ id: [2, id64], ttl: [3, int64] })
const leaseRequest = messageCodec({ id: [1, id64] })
const leaseKeepAliveResponse = messageCodec({ id: [2, id64], ttl: [3, int64] })
const nothing = messageCodec({})

const alarmMember = messageCodec({ member: [1, id64], alarm: [2, int64] })
const alarmResponse = messageCodec({ alarms: [2, messageList(alarmMember)] })
export const alarmType = { noSpace: 1, corrupt: 2 } as const

/**
 * Status of one member: `allocated`, `used` and `quota` are dbSize, dbSizeInUse and dbSizeQuota, in bytes. `quota` 0:
 * before etcd 3.6.
 */
const statusResponse = messageCodec({
  header: [1, oneMessage(header)],
  version: [2, textValue],
  allocated: [3, int64],
  used: [9, int64],
  quota: [12, int64],
})

type In<C> = C extends Codec<unknown, infer Value> ? Value : never
type Out<C> = C extends Codec<infer Value, never> ? Value : never

export type KeyValue = Out<typeof keyValue>
export type RangeResponse = Out<typeof rangeResponse>
export type Compare = In<typeof compare>
export type TxnOperation = In<typeof operation>
export type TxnRequest = In<typeof txnRequest>
export type TxnResponse = Out<typeof txnResponse>
export type WatchRequest = In<typeof watchRequest>
export type WatchResponse = Out<typeof watchResponse>

export const methods = {
  range: method('KV/Range', rangeRequest, rangeResponse),
  txn: method('KV/Txn', txnRequest, txnResponse),
  watch: method('Watch/Watch', watchRequest, watchResponse),
  leaseGrant: method('Lease/LeaseGrant', leaseGrantRequest, leaseGrantResponse),
  leaseRevoke: method('Lease/LeaseRevoke', leaseRequest, nothing),
  leaseKeepAlive: method('Lease/LeaseKeepAlive', leaseRequest, leaseKeepAliveResponse),
  /** Without fields it returns the alarms that are raised. */
  alarms: method('Maintenance/Alarm', nothing, alarmResponse),
  status: method('Maintenance/Status', nothing, statusResponse),
}

function method<I, O>(name: string, request: Codec<unknown, I>, answer: Codec<O, never>): Method<O, I> {
  return { path: `/etcdserverpb.${name}`, request, answer }
}
