/**
 * Asks etcd for the versions of keys: those asked for while a question is under way are one question together. A fleet that comes back
 * repeats the reports of all its pods, and each is answered only when etcd has no other version: 60,000 calls for ten thousand nodes.
 */
import type { EtcdClient } from './etcd-client.ts'
import { hasTooManyOperations } from './etcd-error.ts'
import { methods } from './etcd-messages.ts'

/** The revision of the key's last change, at some moment after the call; 0: there is no such key. Rejects with EtcdError. */
export type EtcdVersions = (key: Buffer) => Promise<number>

/** etcd takes 128 operations in a transaction. One that has a smaller `--max-txn-ops` is asked for half as many, until it answers. */
const usualKeys = 100

type Question = {
  readonly key: Buffer
  readonly resolve: (version: number) => void
  readonly reject: (error: unknown) => void
}

export function etcdVersions(client: Pick<EtcdClient, 'call'>): EtcdVersions {
  const waiting: Question[] = []
  let isAsking = false
  let mostKeys = usualKeys

  const ask = async (questions: readonly Question[]): Promise<void> => {
    try {
      const success = questions.map(({ key }) => ({ range: { key, limit: 1, keysOnly: true } }))
      const { responses } = await client.call(methods.txn, { success })
      for (const [index, { resolve }] of questions.entries()) resolve(responses[index]?.range?.kvs[0]?.modRevision ?? 0)
    } catch (error) {
      if (questions.length > 1 && hasTooManyOperations(error)) {
        mostKeys = Math.min(mostKeys, Math.ceil(questions.length / 2))
        await askTogether([...questions])
        return
      }
      for (const { reject } of questions) reject(error)
    }
  }

  /** At the same time: one after the other, the last of many would wait for as many deadlines while etcd does not answer. */
  const askTogether = async (questions: Question[]) => {
    const asked: Promise<void>[] = []
    while (questions.length > 0) asked.push(ask(questions.splice(0, mostKeys)))
    await Promise.all(asked)
  }
  const askAll = async () => {
    isAsking = true
    while (waiting.length > 0) await askTogether(waiting)
    isAsking = false
  }

  return (key) =>
    new Promise((resolve, reject) => {
      waiting.push({ key, resolve, reject })
      if (!isAsking) void askAll()
    })
}
