/** The guarantees of `store/store.ts`, as tests. Each store runs the whole suite. Objects are compared by value. */
import tap, { type Test } from 'tap'
import { isApiError, type StatusReason } from '../../api/api-error.ts'
import type { ConfigMap } from '../../api/config-map.ts'
import type { Lease } from '../../api/lease.ts'
import type { Pod } from '../../api/pod.ts'
import { type Clock, systemClock } from '../../daemon/clock.ts'
import type { ChangeCursor, Store, WatchEvent } from '../store/store.ts'

/** Opens an empty store that keeps at least `historyLength` changes of each kind, and at most twice as many. */
export type OpenStore = (needs: { clock: Clock; historyLength: number }) => Promise<Store> | Store

export function storeContract(open: OpenStore, settings: { readonly skip?: string | false } = {}): void {
  const test = (name: string, run: (t: Test) => Promise<void>) => tap.test(name, settings, run)
  const opened = async (t: Test) => {
    const store = await open({ clock: systemClock, historyLength: 8 })
    t.teardown(() => store.close())
    return store
  }

  test('a created object gets uid, creation time and version, and is found again', async (t) => {
    const store = await opened(t)
    const pod = await store.create('pods', aPod('web'))
    t.match(pod.metadata.uid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    t.match(pod.metadata.creationTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    t.equal(pod.metadata.generation, undefined, 'a kind that does not count has none')
    t.equal(pod.metadata.resourceVersion, await store.version())
    t.same(await store.get('pods', { namespace: 'default', name: 'web' }), pod)
    t.equal(await store.get('pods', { namespace: 'other', name: 'web' }), undefined)
  })

  test('uid and creation time that are given are kept', async (t) => {
    const store = await opened(t)
    const metadata = { name: 'web', namespace: 'default', uid: 'given', creationTimestamp: '2001-01-01T00:00:00Z' }
    const pod = await store.create('pods', { ...aPod('web'), metadata })
    t.same([pod.metadata.uid, pod.metadata.creationTimestamp], ['given', '2001-01-01T00:00:00Z'])
  })

  test('a name is taken once in a namespace, and free again after deletion', async (t) => {
    const store = await opened(t)
    const first = await store.create('configmaps', aMap('a'))
    await store.create('configmaps', aMap('a', 'other'))
    await refused(t, 'AlreadyExists', store.create('configmaps', aMap('a')))
    await store.delete('configmaps', { namespace: 'default', name: 'a' })
    const second = await store.create('configmaps', aMap('a'))
    t.not(second.metadata.uid, first.metadata.uid)
  })

  test('an object without a name, or without the namespace it needs, is refused', async (t) => {
    const store = await opened(t)
    await refused(t, 'BadRequest', store.create('configmaps', { ...aMap('a'), metadata: { namespace: 'default' } }))
    await refused(t, 'BadRequest', store.create('configmaps', { ...aMap('a'), metadata: { name: 'a' } }))
  })

  test('one counter rises with every change of any kind but leases, which may have their own', async (t) => {
    const store = await opened(t)
    const versions = [
      (await store.create('pods', aPod('a'))).metadata.resourceVersion,
      (await store.create('configmaps', aMap('a'))).metadata.resourceVersion,
      (await store.update('pods', aPod('a', 'image:2'))).metadata.resourceVersion,
      (await store.updateStatus('pods', { ...aPod('a'), status: { phase: 'Running' } })).metadata.resourceVersion,
      (await store.delete('pods', { namespace: 'default', name: 'a' })).metadata.resourceVersion,
    ].map(Number)
    t.same(
      versions,
      [...new Set(versions)].sort((a, b) => a - b),
    )
    t.equal(Number(await store.version()), versions.at(-1))
    const made = await store.create('leases', aLease('n1'))
    const renewed = await store.update('leases', aLease('n1', '2026-01-01T00:00:10.000000Z'))
    t.ok(Number(renewed.metadata.resourceVersion) > Number(made.metadata.resourceVersion))
    t.equal(await store.version('leases'), renewed.metadata.resourceVersion)
  })

  test('an update replaces the object whole, and keeps uid and creation time', async (t) => {
    const store = await opened(t)
    const before = await store.create('configmaps', { ...aMap('a'), data: { one: '1' } })
    const after = await store.update('configmaps', { ...aMap('a'), data: { two: '2' } })
    t.same(after.data, { two: '2' })
    t.equal(after.metadata.uid, before.metadata.uid)
    t.equal(after.metadata.creationTimestamp, before.metadata.creationTimestamp)
  })

  test('an update of a version that is past is a conflict; without a version it overwrites', async (t) => {
    const store = await opened(t)
    const first = await store.create('configmaps', aMap('a'))
    const second = await store.update('configmaps', { ...first, data: { by: 'one' } })
    await refused(t, 'Conflict', store.update('configmaps', { ...first, data: { by: 'two' } }))
    t.same(await store.get('configmaps', { namespace: 'default', name: 'a' }), second)
    const third = await store.update('configmaps', { ...aMap('a'), data: { by: 'three' } })
    t.same(third.data, { by: 'three' })
  })

  test('of two updates of one version at once, one is a conflict', async (t) => {
    const store = await opened(t)
    const first = await store.create('configmaps', aMap('a'))
    const results = await Promise.allSettled([
      store.update('configmaps', { ...first, data: { by: 'one' } }),
      store.update('configmaps', { ...first, data: { by: 'two' } }),
    ])
    t.same(results.map((result) => result.status).sort(), ['fulfilled', 'rejected'])
  })

  test('an update that names another uid is a conflict, and one of nothing is not found', async (t) => {
    const store = await opened(t)
    await store.create('configmaps', aMap('a'))
    const metadata = { name: 'a', namespace: 'default', uid: 'another' }
    await refused(t, 'Conflict', store.update('configmaps', { ...aMap('a'), metadata }))
    await refused(t, 'NotFound', store.update('configmaps', aMap('missing')))
    await refused(t, 'NotFound', store.updateStatus('pods', aPod('missing')))
  })

  test('writing what is there already changes nothing', async (t) => {
    const store = await opened(t)
    const pod = await store.create('pods', aPod('web'))
    const version = await store.version()
    t.same(await store.update('pods', aPod('web')), pod)
    t.same(await store.update('pods', pod), pod)
    t.same(await store.updateStatus('pods', pod), pod)
    t.equal(await store.version(), version)
  })

  test('the generation counts changes of the specification and of nothing else', async (t) => {
    const store = await opened(t)
    const made = await store.create('poddisruptionbudgets', aBudget(1))
    t.equal(made.metadata.generation, 1)
    const labelled = await store.update('poddisruptionbudgets', {
      ...aBudget(1),
      metadata: { name: 'web', namespace: 'default', labels: { a: 'b' }, generation: 7 },
    })
    t.equal(labelled.metadata.generation, 1, 'labels do not, nor does a generation that is sent')
    const status = { currentHealthy: 1, desiredHealthy: 1, disruptionsAllowed: 0, expectedPods: 1 }
    const counted = await store.updateStatus('poddisruptionbudgets', { ...labelled, status })
    t.equal(counted.metadata.generation, 1, 'a status does not')
    const changed = await store.update('poddisruptionbudgets', { ...counted, spec: aBudget(2).spec })
    t.equal(changed.metadata.generation, 2)
  })

  test('a writer that compared an object in another version states whether its generation changes', async (t) => {
    const store = await opened(t)
    const made = await store.create('poddisruptionbudgets', aBudget(1))
    const kept = await store.update('poddisruptionbudgets', { ...made, spec: aBudget(2).spec }, 'kept')
    t.match(kept, { metadata: { generation: 1 }, spec: aBudget(2).spec })
    const labelled = { ...kept, metadata: { ...kept.metadata, labels: { a: 'b' } } }
    const raised = await store.update('poddisruptionbudgets', labelled, 'raised')
    t.equal(raised.metadata.generation, 2)
    t.same(await store.update('poddisruptionbudgets', raised, 'raised'), raised, 'what changes nothing is not written')
  })

  test('the generation counts changes of fields that are the specification without its name', async (t) => {
    const store = await opened(t)
    const hooks = (url: string) =>
      ({
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingWebhookConfiguration',
        metadata: { name: 'checks' },
        webhooks: [{ name: 'a.b.c', clientConfig: { url }, sideEffects: 'None', admissionReviewVersions: ['v1'] }],
      }) as const
    const kind = 'validatingwebhookconfigurations'
    const made = await store.create(kind, hooks('https://a'))
    t.equal(made.metadata.generation, 1)
    const labelled = await store.update(kind, { ...made, metadata: { ...made.metadata, labels: { a: 'b' } } })
    t.equal(labelled.metadata.generation, 1, 'labels do not')
    const changed = await store.update(kind, { ...labelled, webhooks: hooks('https://b').webhooks })
    t.equal(changed.metadata.generation, 2)
  })

  test('a status is written alone, by the same rules', async (t) => {
    const store = await opened(t)
    const first = await store.create('pods', aPod('web'))
    const status = { phase: 'Running' } as const
    const second = await store.updateStatus('pods', { ...aPod('web', 'image:other'), status })
    t.same(second.spec, first.spec, 'the specification stays')
    t.same(second.status, status)
    await refused(t, 'Conflict', store.updateStatus('pods', { ...first, status: { phase: 'Failed' } }))
    t.same((await store.get('pods', { namespace: 'default', name: 'web' }))?.status, status)
  })

  test('a deletion obeys its preconditions and gives the object as it last was', async (t) => {
    const store = await opened(t)
    const map = await store.create('configmaps', aMap('a'))
    const key = { namespace: 'default', name: 'a' }
    await refused(t, 'Conflict', store.delete('configmaps', key, { uid: 'another' }))
    await refused(t, 'Conflict', store.delete('configmaps', key, { resourceVersion: '0' }))
    const gone = await store.delete('configmaps', key, { uid: map.metadata.uid })
    t.same(
      { ...gone, metadata: { ...gone.metadata, resourceVersion: '' } },
      {
        ...map,
        metadata: { ...map.metadata, resourceVersion: '' },
      },
    )
    t.ok(Number(gone.metadata.resourceVersion) > Number(map.metadata.resourceVersion))
    await refused(t, 'NotFound', store.delete('configmaps', key))
  })

  test('what is handed out is frozen, and what is handed in stays the caller’s', async (t) => {
    const store = await opened(t)
    const data: Record<string, string> = { a: '1' }
    const map = await store.create('configmaps', { ...aMap('a'), data })
    data['a'] = '2'
    t.same(map.data, { a: '1' })
    t.throws(() => Object.assign(map.data ?? {}, { a: '3' }))
    t.throws(() => Object.assign(map.metadata, { name: 'b' }))
  })

  test('a list has what is there, by namespace and name, and the version to watch from', async (t) => {
    const store = await opened(t)
    for (const [namespace, name] of [
      ['b', 'x'],
      ['a', 'z'],
      ['a', 'y'],
    ] as const) {
      await store.create('configmaps', aMap(name, namespace))
    }
    await store.create('configmaps', aMap('gone', 'a'))
    await store.delete('configmaps', { namespace: 'a', name: 'gone' })
    const all = await store.list('configmaps')
    t.same(
      all.items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
      ['a/y', 'a/z', 'b/x'],
    )
    t.same(
      (await store.list('configmaps', 'a')).items.map(({ metadata }) => metadata.name),
      ['y', 'z'],
    )
    t.same((await store.list('configmaps', 'none')).items, [])
    t.equal(all.resourceVersion, await store.version())
  })

  test('a watch returns every change after its version, in order, with what was before', async (t) => {
    const store = await opened(t)
    await store.create('configmaps', aMap('before'))
    const { resourceVersion } = await store.list('configmaps')
    const a = await store.create('configmaps', aMap('a'))
    const b = await store.update('configmaps', { ...aMap('a'), data: { x: '1' } })
    const stop = new AbortController()
    const events = take(store.watch('configmaps', resourceVersion, stop.signal), 3)
    const c = await store.delete('configmaps', { namespace: 'default', name: 'a' })
    t.same(await events, [
      { type: 'ADDED', object: a, previous: undefined, version: Number(a.metadata.resourceVersion) },
      { type: 'MODIFIED', object: b, previous: a, version: Number(b.metadata.resourceVersion) },
      { type: 'DELETED', object: c, previous: b, version: Number(c.metadata.resourceVersion) },
    ])
  })

  test('a cursor returns all changes in order, calls back once when one is there, and ends with the store', async (t) => {
    const store = await opened(t)
    const { resourceVersion } = (await store.create('configmaps', aMap('a'))).metadata
    const cursor = store.changes('configmaps', resourceVersion)
    t.equal(cursor.next(), undefined)
    const calls: string[] = []
    cursor.onReady(() => calls.push('called'))
    cursor.onReady(() => t.fail('called after it was cancelled'))()
    const made = await Promise.all([store.create('configmaps', aMap('b')), store.create('configmaps', aMap('c'))])
    const versions = made.map(({ metadata }) => Number(metadata.resourceVersion)).sort((a, b) => a - b)
    t.same([(await nextChange(cursor))?.version, (await nextChange(cursor))?.version], versions)
    t.equal(calls.length, 1)
    t.equal(cursor.next(), undefined)
    t.notOk(cursor.ended)
    await refused(t, 'Expired', nextChange(store.changes('configmaps', '999999999999')))
    cursor.onReady(() => calls.push('called'))
    await store.close()
    t.ok(cursor.ended)
    t.equal(calls.length, 2)
  })

  test('a watch without a version begins when it is requested, and receives one kind only', async (t) => {
    const store = await opened(t)
    await store.create('configmaps', aMap('before'))
    const watch = store.watch('configmaps', undefined, new AbortController().signal)
    await store.create('pods', aPod('web'))
    await store.create('leases', aLease('n1'))
    await store.create('configmaps', aMap('after'))
    t.same(
      (await take(watch, 1)).map(({ object }) => object.metadata.name),
      ['after'],
    )
  })

  test('the pods of a node are found by it, also after they were bound, moved in, changed and deleted', async (t) => {
    const store = await opened(t)
    const pod = (name: string, nodeName?: string): Pod => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default' },
      spec: { containers: [{ name: 'main', image: 'image:1' }], ...(nodeName !== undefined && { nodeName }) },
    })
    const of = async (node: string) => (await store.podsOfNode(node)).map(({ metadata }) => metadata.name).sort()
    await store.create('pods', pod('a', 'pi-1'))
    const waiting = await store.create('pods', pod('b'))
    await store.create('pods', pod('c', 'pi-2'))
    t.same([await of('pi-1'), await of('pi-2'), await of('pi-3')], [['a'], ['c'], []])
    await store.update('pods', { ...waiting, spec: { ...waiting.spec, nodeName: 'pi-1' } })
    const written = await store.updateStatus('pods', { ...pod('a', 'pi-1'), status: { phase: 'Running' } })
    t.same(await of('pi-1'), ['a', 'b'])
    t.same(
      (await store.podsOfNode('pi-1')).find(({ metadata }) => metadata.name === 'a'),
      written,
    )
    await store.delete('pods', { namespace: 'default', name: 'a' })
    t.same(await of('pi-1'), ['b'])
  })

  test('list and watch miss nothing while statuses and leases are written between', async (t) => {
    const store = await opened(t)
    await store.create('pods', aPod('web'))
    const waiting = store.updateStatus('pods', { ...aPod('web'), status: { phase: 'Running' } })
    await store.create('leases', aLease('n1'))
    const { items, resourceVersion } = await store.list('pods')
    const watch = store.watch('pods', resourceVersion, new AbortController().signal)
    await waiting
    await store.delete('pods', { namespace: 'default', name: 'web' })
    const events = await take(watch, items[0]?.status?.phase === 'Running' ? 1 : 2)
    t.equal(events.at(-1)?.type, 'DELETED')
    t.equal(events.at(-1)?.previous?.status?.phase, 'Running')
  })

  test('a watch ends without an error when its signal aborts', async (t) => {
    const store = await opened(t)
    const stop = new AbortController()
    const ended = take(store.watch('pods', undefined, stop.signal), 1)
    stop.abort()
    t.same(await ended, [])
    t.same(await take(store.watch('pods', undefined, AbortSignal.abort()), 1), [])
  })

  test('a version that is not remembered, or not given yet, is Expired', async (t) => {
    const store = await opened(t)
    const first = await store.create('configmaps', aMap('a'))
    for (let i = 0; i < 20; i++) await store.update('configmaps', { ...aMap('a'), data: { i: `${i}` } })
    const never = new AbortController().signal
    await refused(t, 'Expired', take(store.watch('configmaps', first.metadata.resourceVersion, never), 1))
    await refused(t, 'Expired', take(store.watch('configmaps', '999999999999', never), 1))
    const kept = await take(store.watch('configmaps', `${Number(await store.version()) - 8}`, never), 8)
    t.equal(kept.length, 8, 'as many as were promised are remembered')
    const pods = store.watch('pods', first.metadata.resourceVersion, never)
    await store.create('pods', aPod('web'))
    t.equal((await take(pods, 1)).length, 1, 'a busy kind does not make a calm one forget')
  })

  test('a reader that falls too far behind gets Expired, and other readers do not wait for it', async (t) => {
    const store = await opened(t)
    const never = new AbortController().signal
    const slow = store.watch('configmaps', undefined, never)[Symbol.asyncIterator]()
    const fast = take(store.watch('configmaps', undefined, never), 41)
    await store.create('configmaps', aMap('a'))
    await slow.next()
    for (let i = 0; i < 40; i++) await store.update('configmaps', { ...aMap('a'), data: { i: `${i}` } })
    t.equal((await fast).length, 41)
    const read: (string | undefined)[] = []
    const readAll = async (watch: typeof slow) => {
      while (read.length < 40) read.push((await watch.next()).value?.object.data?.i)
    }
    await refused(t, 'Expired', readAll(slow))
    t.ok(read.length < 40, `${read.length} changes, then Expired`)
    t.same(read, [...read.keys()].map(String), 'no change is left out before')
  })

  test('leases come and go like anything else', async (t) => {
    const store = await opened(t)
    await store.create('leases', aLease('n1'))
    const renewed = await store.update('leases', aLease('n1', '2026-01-01T00:00:10.000000Z'))
    t.equal(renewed.spec?.renewTime, '2026-01-01T00:00:10.000000Z')
    await store.delete('leases', { namespace: 'kube-node-lease', name: 'n1' })
    t.same((await store.list('leases')).items, [])
  })

  test('of two creations of one name at once, one is AlreadyExists, and the other one is visible then', async (t) => {
    const store = await opened(t)
    const results = await Promise.allSettled([
      store.create('configmaps', { ...aMap('a'), data: { by: 'one' } }),
      store.create('configmaps', { ...aMap('a'), data: { by: 'two' } }),
    ])
    const made = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    t.equal(made.length, 1)
    t.same(await store.get('configmaps', { namespace: 'default', name: 'a' }), made[0])
  })

  test('after a Conflict the change that caused it is visible: reading and trying again succeeds', async (t) => {
    const store = await opened(t)
    const first = await store.create('pods', aPod('web'))
    const other = store.updateStatus('pods', { ...first, status: { phase: 'Running' } })
    await refused(
      t,
      'Conflict',
      store.update('pods', { ...first, metadata: { ...first.metadata, labels: { a: 'b' } } }),
    )
    const present = await store.get('pods', { namespace: 'default', name: 'web' })
    t.same(present, await other)
    t.ok(
      present !== undefined &&
        (await store.update('pods', { ...present, metadata: { ...present.metadata, labels: { a: 'b' } } })),
    )
  })

  test('renewals of a lease are watched in order, and one with a past version is a Conflict', async (t) => {
    for (const namespace of ['kube-node-lease', 'default']) {
      const store = await opened(t)
      const made = await store.create('leases', aLease('n1', undefined, namespace))
      const renewed = await store.update('leases', { ...made, spec: { renewTime: '2026-01-01T00:00:10.000000Z' } })
      await refused(t, 'Conflict', store.update('leases', made))
      await refused(t, 'AlreadyExists', store.create('leases', aLease('n1', undefined, namespace)))
      const cursor = store.changes('leases', made.metadata.resourceVersion)
      t.match(await nextChange(cursor), { type: 'MODIFIED', object: renewed, previous: made })
      await store.delete('leases', { namespace, name: 'n1' })
      t.match(await nextChange(cursor), { type: 'DELETED', previous: renewed })
      t.equal(await store.get('leases', { namespace, name: 'n1' }), undefined)
    }
  })

  test('leases of nodes and of clients that are written at once are watched in one order', async (t) => {
    const store = await opened(t)
    const from = await store.version('leases')
    await Promise.all(
      ['default', 'kube-node-lease', 'default', 'kube-node-lease', 'default', 'kube-node-lease'].map((namespace, at) =>
        store.create('leases', aLease(`n${at}`, undefined, namespace)),
      ),
    )
    const cursor = store.changes('leases', from)
    const versions: number[] = []
    for (let count = 0; count < 6; count++) {
      versions.push(Number((await nextChange(cursor))?.object.metadata.resourceVersion))
    }
    t.same(
      versions,
      [...new Set(versions)].sort((a, b) => a - b),
    )
    t.equal(await store.version('leases'), String(versions.at(-1)))
    const { items } = await store.list('leases')
    t.equal(items.length, 6)
  })

  test('a closed store writes nothing more', async (t) => {
    const store = await opened(t)
    await store.close()
    await refused(t, 'ServiceUnavailable', store.create('configmaps', aMap('a')))
    await store.close()
  })
}

async function refused(t: Test, reason: StatusReason, answer: Promise<unknown>): Promise<void> {
  const error = await answer.then(
    () => undefined,
    (error: unknown) => error,
  )
  t.ok(isApiError(error, reason), `${reason}: ${String(error)}`)
}

/** undefined: the store is closed. */
async function nextChange<Event>(cursor: ChangeCursor<Event>): Promise<Event | undefined> {
  for (;;) {
    const event = cursor.next()
    if (event !== undefined || cursor.ended) return event
    await new Promise<void>((resolve) => cursor.onReady(resolve))
  }
}

async function take<R extends 'pods' | 'configmaps'>(
  watch: AsyncIterable<WatchEvent<R>>,
  count: number,
): Promise<WatchEvent<R>[]> {
  const events: WatchEvent<R>[] = []
  for await (const event of watch) {
    events.push(event)
    if (events.length === count) break
  }
  return events
}

function aPod(name: string, image = 'image:1'): Pod {
  const spec = { containers: [{ name: 'main', image }] }
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec }
}

function aMap(name: string, namespace = 'default'): ConfigMap {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace } }
}

function aLease(name: string, renewTime = '2026-01-01T00:00:00.000000Z', namespace = 'kube-node-lease'): Lease {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace },
    spec: { holderIdentity: name, renewTime },
  }
}

function aBudget(minAvailable: number) {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace: 'default' },
    spec: { minAvailable },
  } as const
}
