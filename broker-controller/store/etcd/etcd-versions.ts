/**
 * Asks etcd for the versions of keys: those asked for while a question is under way are one question together. A fleet that comes back
 * repeats the reports of all its pods, and each is answered only when etcd has no other version: 60,000 calls for ten thousand nodes.
 */
import type { EtcdClient } from './etcd-client.ts'
import { methods } from './etcd-messages.ts'

/** The revision of the key's last change, at some moment after the call; 0: there is no such key. Rejects with EtcdError. */
export type EtcdVersions = (key: Buffer) => Promise<number>

/** etcd takes 128 operations in a transaction, unless it is given another `--max-txn-ops`. */
const mostKeys = 100

type Question = {
  readonly key: Buffer
  readonly resolve: (version: number) => void
  readonly reject: (error: unknown) => void
}

export function etcdVersions(client: Pick<EtcdClient, 'call'>): EtcdVersions {
  const waiting: Question[] = []
  let isAsking = false

  const ask = async (questions: readonly Question[]) => {
    try {
      const success = questions.map(({ key }) => ({ range: { key, limit: 1, keysOnly: true } }))
      const { responses } = await client.call(methods.txn, { success })
      for (const [index, { resolve }] of questions.entries()) resolve(responses[index]?.range?.kvs[0]?.modRevision ?? 0)
    } catch (error) {
      for (const { reject } of questions) reject(error)
    }
  }

  const askAll = async () => {
    isAsking = true
    while (waiting.length > 0) {
      const questions: Promise<void>[] = []
      // Together: one after the other, the last of many would wait for as many deadlines while etcd does not answer.
      while (waiting.length > 0) questions.push(ask(waiting.splice(0, mostKeys)))
      await Promise.all(questions)
    }
    isAsking = false
  }

  return (key) =>
    new Promise((resolve, reject) => {
      waiting.push({ key, resolve, reject })
      if (!isAsking) void askAll()
    })
}
