/** A client of etcd whose connection breaks: the next call of a method is not answered, and has happened, or has not. */
import type { EtcdClient, EtcdStream, StreamListener } from '../store/etcd/etcd-client.ts'
import { EtcdError, grpcCode } from '../store/etcd/etcd-error.ts'
import type { Method } from '../store/etcd/etcd-messages.ts'

export interface UncertainEtcd {
  readonly client: EtcdClient
  /** The next call of this method, or the next stream, ends without an answer. */
  breakNext(method: { readonly path: string }, outcome: 'happened' | 'lost'): void
  /** How many calls of it were made, with those that broke. */
  calls(method: { readonly path: string }): number
}

export function uncertainEtcd(inner: EtcdClient): UncertainEtcd {
  const breaking = new Map<string, 'happened' | 'lost'>()
  const made = new Map<string, number>()
  const broken = () => new EtcdError(grpcCode.unavailable, 'read ECONNRESET')
  const take = (path: string) => {
    made.set(path, (made.get(path) ?? 0) + 1)
    const outcome = breaking.get(path)
    breaking.delete(path)
    return outcome
  }
  return {
    client: {
      ...inner,
      async call<Out, In>(method: Method<Out, In>, request: In, deadlineMs?: number): Promise<Out> {
        const outcome = take(method.path)
        if (outcome === 'lost') throw broken()
        const answer = await inner.call(method, request, deadlineMs)
        if (outcome === 'happened') throw broken()
        return answer
      },
      stream<Out, In>(method: Method<Out, In>, request: In, listener: StreamListener<Out>): EtcdStream {
        if (take(method.path) === undefined) return inner.stream(method, request, listener)
        queueMicrotask(() => listener.end(broken()))
        return { close: () => undefined }
      },
    },
    breakNext: ({ path }, outcome) => void breaking.set(path, outcome),
    calls: ({ path }) => made.get(path) ?? 0,
  }
}
