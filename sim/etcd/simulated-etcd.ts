/** The etcd of a world, and how a controller reaches it: over the network, with the deadlines and errors of the client on gRPC. */
import { setMaxListeners } from 'node:events'
import {
  callDeadlineMs,
  type EtcdClient,
  type EtcdStream,
  type StreamListener,
} from '../../broker-controller/store/etcd/etcd-client.ts'
import { EtcdError, grpcCode } from '../../broker-controller/store/etcd/etcd-error.ts'
import { type Method, methods, type TxnRequest } from '../../broker-controller/store/etcd/etcd-messages.ts'
import { startDeadline } from '../../daemon/deadline.ts'
import type { Servers } from '../world/servers.ts'
import type { SimulatedNetwork } from '../world/simulated-network.ts'
import { openWire, type ProgramPlace, type WireEnd } from '../world/wire.ts'
import type { EtcdKeyspace, RangeRequest, WatchCreate } from './etcd-keyspace.ts'

export const etcdMachine = 'etcd'

/** `path`: of the method; undefined: the stream with this number is over. */
export type ToEtcd = { readonly id: number; readonly path: string | undefined; readonly request: unknown }
export type FromEtcd = { readonly id: number; readonly answer: unknown }
export type EtcdServers = Servers<WireEnd<ToEtcd, FromEtcd>>

export function serveEtcd(
  keyspace: EtcdKeyspace,
  place: ProgramPlace,
  network: SimulatedNetwork,
  listening: EtcdServers,
): void {
  listening.listen(place, (client) => {
    const [clientEnd, end] = openWire<ToEtcd, FromEtcd>(network, client, place)
    const streams = new Map<number, () => void>()
    end.listen(
      ({ id, path, request }) => {
        const answer = (value: unknown) => end.send({ id, answer: value })
        if (path === undefined) streams.get(id)?.()
        else if (path === methods.watch.path) {
          const { create = {} } = request as { readonly create?: WatchCreate }
          streams.set(id, keyspace.watch(create, answer))
        } else answer(answerOf(keyspace, path, request, client.machine))
      },
      () => {
        for (const stop of streams.values()) stop()
      },
    )
    return clientEnd
  })
}

function answerOf(keyspace: EtcdKeyspace, path: string, request: unknown, by: string): unknown {
  switch (path) {
    case methods.range.path:
      return keyspace.range(request as RangeRequest)
    case methods.txn.path:
      return keyspace.txn(request as TxnRequest, by)
    case methods.leaseGrant.path:
      return keyspace.grant((request as { readonly ttl: number }).ttl)
    case methods.leaseKeepAlive.path:
      return keyspace.keepAlive((request as { readonly id: string }).id)
    case methods.leaseRevoke.path:
      return keyspace.revoke((request as { readonly id: string }).id)
    default:
      throw new Error(`The etcd of the world does not serve ${path}`)
  }
}

type Waiting = { readonly message: (answer: unknown) => void; readonly fail: (error: EtcdError) => void }
type Link = { readonly wire: WireEnd<ToEtcd, FromEtcd>; readonly waiting: Map<number, Waiting> }

/** The connection of a client, which is opened again when it was left. */
function linkKeeper(place: ProgramPlace, servers: EtcdServers) {
  const closing = new AbortController()
  setMaxListeners(0, closing.signal) // each connection listens: many are not a leak
  let opening: Promise<Link> | undefined

  const leave = ({ wire, waiting }: Link, because: string) => {
    opening = undefined
    wire.destroy()
    const all = [...waiting.values()]
    waiting.clear()
    for (const { fail } of all) fail(new EtcdError(grpcCode.unavailable, because))
  }
  const linkOn = (wire: Link['wire']): Link => {
    const link: Link = { wire, waiting: new Map() }
    wire.listen(
      ({ id, answer }) => link.waiting.get(id)?.message(answer),
      ({ message }) => leave(link, message),
    )
    return link
  }
  return {
    leave,
    connected(): Promise<Link> {
      opening ??= place.life
        .within(() => servers.connect(place, etcdMachine, closing.signal))
        .then(linkOn)
        .catch((cause: unknown) => {
          opening = undefined
          throw new EtcdError(grpcCode.unavailable, `No connection established: ${String(cause)}`, { sent: false })
        })
      return opening
    },
    close() {
      closing.abort(new Error('The client is closed'))
      void opening?.then((link) => leave(link, 'The client is closed')).catch(() => undefined)
    },
  }
}

/** As `openEtcdClient` gives it, of a controller at this place. */
export function simulatedEtcdClient(place: ProgramPlace, servers: EtcdServers): EtcdClient {
  const { clock } = place.life
  const { connected, leave, close } = linkKeeper(place, servers)
  let lastId = 0

  return {
    call<Out, In>({ path }: Method<Out, In>, request: In, deadlineMs = callDeadlineMs): Promise<Out> {
      return new Promise((resolve, reject) => {
        let link: Link | undefined
        const id = ++lastId
        const settle = (act: () => void) => {
          stop()
          link?.waiting.delete(id)
          act()
        }
        let isLate = false
        const stop = startDeadline(
          deadlineMs,
          () => {
            isLate = true
            const late = 'No answer from etcd in time'
            if (link === undefined)
              return reject(new EtcdError(grpcCode.unavailable, 'No connection established', { sent: false }))
            const used = link
            settle(() => reject(new EtcdError(grpcCode.deadlineExceeded, late)))
            leave(used, late)
          },
          clock,
        )
        const send = (to: Link) => {
          if (isLate) return
          link = to
          to.waiting.set(id, {
            message: (answer) => settle(() => (isRefusal(answer) ? reject(errorOf(answer)) : resolve(answer as Out))),
            fail: (error) => settle(() => reject(error)),
          })
          to.wire.send({ id, path, request })
        }
        connected().then(send, (error: unknown) => settle(() => reject(error)))
      })
    },
    stream<Out, In>({ path }: Method<Out, In>, request: In, listener: StreamListener<Out>): EtcdStream {
      const id = ++lastId
      let isOver = false
      let leaveStream = () => {}
      const fail = (error: EtcdError) => {
        if (isOver) return
        isOver = true
        listener.end(error)
      }
      connected().then((link) => {
        if (isOver) return
        link.waiting.set(id, { message: (answer) => void (isOver || listener.message(answer as Out)), fail })
        link.wire.send({ id, path, request })
        leaveStream = () => {
          link.waiting.delete(id)
          link.wire.send({ id, path: undefined, request: undefined })
        }
      }, fail)
      return {
        close() {
          isOver = true
          leaveStream()
        },
      }
    },
    reasons: async () => [`${etcdMachine}: no connection`],
    close,
  }
}

type Refusal = { readonly code: number; readonly message: string }

function isRefusal(answer: unknown): answer is Refusal {
  return typeof answer === 'object' && answer !== null && 'code' in answer
}

function errorOf({ code, message }: Refusal): EtcdError {
  return new EtcdError(code, message)
}
