/** The guarantees of `store/store.ts` for a store that can lose the connection to its server, as tests. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import tap, { type Test } from 'tap'
import { isApiError } from '../../api/api-error.ts'
import type { ConfigMap } from '../../api/config-map.ts'
import type { Store } from '../store/store.ts'
import type { RemoteStore } from './remote-store.ts'

/** An empty store that keeps at least 8 changes of each kind, and at most 16; `other`: another client of its server. */
export type OpenRemoteStore = () => Promise<RemoteStore & { readonly other: Store }>

const key = { namespace: 'default', name: 'a' }

export function storeConnectionContract(
  open: OpenRemoteStore,
  settings: { readonly skip?: string | false } = {},
): void {
  const test = (name: string, run: (t: Test) => Promise<void>) => tap.test(name, settings, run)
  const opened = async (t: Test) => {
    const remote = await open()
    t.teardown(() => remote.store.close())
    return remote
  }

  test('without a connection a write is refused with ServiceUnavailable and happens neither now nor later', async (t) => {
    const { store, other, connection } = await opened(t)
    const made = await store.create('configmaps', aMap('1'))
    connection.lose()
    const wanted = { ...made, data: { by: '2' } }
    const error = await decisiveErrorOf(() => store.update('configmaps', wanted))
    t.ok(isApiError(error, 'ServiceUnavailable'), String(error))
    connection.restore()
    t.same(await store.get('configmaps', key), made)
    const updated = await store.update('configmaps', { ...made, data: { by: '3' } })
    t.same(await other.get('configmaps', key), updated, 'it works again without being opened again')
  })

  test('a write is answered, or refused without effect, or Timeout; repeated with its version it happens once', async (t) => {
    const outcomeOf = async (held: 'requests' | 'answers' | undefined): Promise<string> => {
      const { store, other, connection } = await opened(t)
      const made = await store.create('configmaps', aMap('1'))
      const wanted = { ...made, data: { by: '2' } }
      const isIn = async () => (await other.get('configmaps', key))?.data?.['by'] === '2'
      const error = await errorOfCutOff(connection, held, () => store.update('configmaps', wanted), isIn)
      // Readers of the other store see all that was written before its own write.
      await other.create('namespaces', aNamespace)
      const isWritten = await isIn()
      if (error === undefined) t.ok(isWritten, 'an answered write is there')
      else if (!isApiError(error, 'Timeout')) t.notOk(isWritten, 'an error other than Timeout: nothing changed')
      connection.restore()
      const again = await decisiveErrorOf(() => store.update('configmaps', wanted))
      const isConflict = isApiError(again, 'Conflict')
      t.ok(
        isWritten ? isConflict : again === undefined,
        `the second attempt succeeds only in place of the first: ${again}`,
      )
      const [event] = await take(store, made.metadata.resourceVersion, 1)
      t.same(event?.object.data, { by: '2' })
      const now = await store.get('configmaps', key)
      t.equal(now?.metadata.resourceVersion, event?.object.metadata.resourceVersion)
      return `${error === undefined ? 'answered' : 'error'} ${isWritten}`
    }
    t.equal(await outcomeOf(undefined), 'answered true')
    t.equal(await outcomeOf('requests'), 'error false')
    t.equal(await outcomeOf('answers'), 'error true')
  })

  test('a watch goes on when the connection is back: no change is left out and none comes twice', async (t) => {
    const { store, other, connection } = await opened(t)
    const { metadata } = await store.create('configmaps', aMap('0'))
    const watching = take(store, metadata.resourceVersion, 15)
    for (let i = 1; i <= 15; i++) {
      await other.update('configmaps', aMap(String(i)))
      if (i % 5 === 2) connection.lose()
      if (i % 5 === 4) connection.restore()
      if (i % 5 === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    }
    const events = await watching
    t.same(
      events.map(({ object }) => object.data?.['by']),
      Array.from({ length: 15 }, (_, i) => String(i + 1)),
    )
    t.same(
      events.map(({ version }) => version),
      [...new Set(events.map(({ version }) => version))].sort((a, b) => a - b),
    )
  })

  test('a watch that was without a connection for longer than changes are kept is Expired', async (t) => {
    const { store, other, connection } = await opened(t)
    const { metadata } = await store.create('configmaps', aMap('0'))
    const watching = errorOf(take(store, metadata.resourceVersion, 40))
    connection.lose()
    for (let i = 0; i < 40; i++) await other.update('configmaps', aMap(String(i)))
    connection.restore()
    const error = await watching
    t.ok(isApiError(error, 'Expired'), String(error))
    t.equal((await store.get('configmaps', key))?.data?.['by'], '39', 'a list is whole')
  })

  test('a store that is closed without a connection ends its watches', async (t) => {
    const { store, connection } = await opened(t)
    const watching = take(store, undefined, 1)
    connection.lose()
    await store.close()
    t.same(await watching, [])
  })
}

/** Error of a write whose connection is lost after it was answered, or while its requests or the answers to them are held. */
async function errorOfCutOff(
  connection: RemoteStore['connection'],
  held: 'requests' | 'answers' | undefined,
  write: () => Promise<unknown>,
  isWritten: () => Promise<boolean>,
): Promise<unknown> {
  if (held !== undefined) connection.hold(held)
  const writing = errorOf(write())
  while (held === 'answers' && !(await isWritten())) await nextTurn()
  if (held === undefined) await writing
  connection.lose()
  return await writing
}

/**
 * Error of a write with a version, which is repeated after Timeout: a store may notice only by the first write that its
 * connection was lost.
 */
async function decisiveErrorOf(write: () => Promise<unknown>): Promise<unknown> {
  for (;;) {
    const error = await errorOf(write())
    if (!isApiError(error, 'Timeout')) return error
  }
}

async function errorOf(answer: Promise<unknown>): Promise<unknown> {
  return answer.then(
    () => undefined,
    (error: unknown) => error ?? new Error('rejected without an error'),
  )
}

async function take(store: Store, from: string | undefined, count: number) {
  const events = []
  for await (const event of store.watch('configmaps', from, new AbortController().signal)) {
    events.push(event)
    if (events.length === count) break
  }
  return events
}

function aMap(by: string): ConfigMap {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: key, data: { by } }
}

const aNamespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'later' } } as const
