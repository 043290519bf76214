import { type Test, test } from 'tap'
import { poolLabel, poolsAnnotation } from '../../../../api/storage/pools.ts'
import type { CopyResult, MoveReport } from '../../../../api/storage/volume-messages.ts'
import { moveOf, moveToAnnotation } from '../../../../api/storage/volume-move.ts'
import { volumeAnnotations } from '../../../../api/storage/volume-names.ts'
import { aNode } from '../../../../api/testing/builders.ts'
import { rewrite } from '../../../store/rewrite.ts'
import { aStorageClass, aStoredClaim } from '../../../testing/volume-objects.ts'
import { volumeWorld } from '../../../testing/volume-world.ts'

const first = '11111111-1111-4111-8111-111111111111'
const second = '22222222-2222-4222-8222-222222222222'
const { status: _, metadata: __, ...sent } = aStoredClaim('data', { spec: { storageClassName: 'local-path' } })
const copy = (round: number): CopyResult => ({ round, files: 2, bytes: 20, digest: 'd' })

/** A claim that is bound to a volume on pi-1, and a second node with a pool. */
async function aFleet(t: Test) {
  const opened: string[] = []
  const sessions = {
    async open(node: string) {
      opened.push(node)
      throw new Error('it is not connected')
    },
  }
  const world = volumeWorld(t, { sessions })
  const end = world.start()
  const { store, clock } = world
  const options = { provisioner: 'bramble.dev/local-path', volumeBindingMode: 'WaitForFirstConsumer' } as const
  await world.add('storageclasses', aStorageClass('local-path', options))
  for (const [name, pool] of [
    ['pi-1', first],
    ['pi-2', second],
  ] as const) {
    const pools = JSON.stringify([{ id: pool, path: `/pool-of-${name}` }])
    const { metadata, ...node } = aNode({ name, annotations: { [poolsAnnotation]: pools } })
    const { uid: _uid, resourceVersion: _version, ...own } = metadata
    await store.create('nodes', { ...node, metadata: own })
  }
  await world.settle()
  const annotations = { [volumeAnnotations.selectedNode]: 'pi-1' }
  await world.add('persistentvolumeclaims', { ...sent, metadata: { namespace: 'default', name: 'data', annotations } })
  await world.settle(500)
  const name = (await world.claim('data'))?.spec?.volumeName ?? ''
  const volume = async () => {
    const found = await world.volume(name)
    if (found === undefined) throw new Error('the volume is gone')
    return found
  }
  const { uid } = (await volume()).metadata
  const move = async () => moveOf(await volume())
  const wish = async (node: string | undefined) => {
    await rewrite({ store, clock }, 'persistentvolumes', {
      key: { namespace: '', name },
      change(fresh) {
        const { [moveToAnnotation]: _old, ...others } = fresh.metadata.annotations ?? {}
        const wanted = node === undefined ? others : { ...others, [moveToAnnotation]: node }
        return { ...fresh, metadata: { ...fresh.metadata, annotations: wanted } }
      },
    })
    await world.settle(500)
  }
  const report = async (node: string, part?: Partial<MoveReport>, done: readonly string[] = []) => {
    const id = (await move())?.id ?? '00000000'
    world.storage.receive(node, { done, refused: [], moves: part === undefined ? [] : [{ uid, id, ...part }] })
    await world.settle(500)
  }
  await report('pi-1')
  await report('pi-2')
  return { ...world, end, opened, name, uid, volume, move, wish, report }
}

test('a volume is moved by what its nodes report, and its place changes in one write', async (t) => {
  const world = await aFleet(t)
  await world.wish('pi-2')
  const begun = await world.move()
  t.match(begun, { phase: 'copy', round: 1, from: { pool: first }, to: { pool: second, node: 'pi-2' } })
  t.match(world.opened, ['pi-2'], 'the copy is tried')
  const before = await world.volume()
  await world.report('pi-2', { received: copy(1) })
  t.match(await world.move(), { phase: 'hold' })
  await world.report('pi-1', { held: true })
  t.match(await world.move(), { phase: 'delta', round: 2 })
  await world.report('pi-2', { received: copy(2) })
  t.match(await world.volume(), { spec: { local: before.spec?.local } })
  await world.report('pi-1', { held: true, sent: copy(2) })
  const moved = await world.volume()
  t.match(moved, {
    metadata: { annotations: { 'bramble.dev/pool': second, 'bramble.dev/has-data': 'true' } },
    spec: {
      local: { path: `/pool-of-pi-2/${begun?.to.folder}` },
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key: poolLabel(second), operator: 'Exists' }] }] },
      },
    },
  })
  t.match(await world.move(), { phase: 'place' })
  await world.report('pi-2', { kept: true })
  t.match(await world.move(), { phase: 'clean' })
  await world.report('pi-1', undefined, [`${world.uid}-${begun?.id}`])
  t.equal(await world.move(), undefined)
  t.notOk(moveToAnnotation in ((await world.volume()).metadata.annotations ?? {}))
  t.match((await world.events('data')).join(), /VolumeMoved the data is on node "pi-2"/)
})

test('a controller that ends at any phase is followed by one that goes on', async (t) => {
  const world = await aFleet(t)
  await world.wish('pi-2')
  const steps: readonly (readonly [string, Partial<MoveReport>])[] = [
    ['pi-2', { received: copy(1) }],
    ['pi-1', { held: true }],
    ['pi-2', { received: copy(2) }],
    ['pi-1', { held: true, sent: copy(2) }],
    ['pi-2', { kept: true }],
  ]
  let { end } = world
  for (const [node, part] of steps) {
    await end()
    end = world.start()
    await world.report(node, part)
  }
  t.match(await world.move(), { phase: 'clean' })
})

test('before the volume is rewritten it can be cancelled, and pods start again where they were', async (t) => {
  const world = await aFleet(t)
  const before = await world.volume()
  await world.wish('pi-2')
  await world.report('pi-2', { received: copy(1) })
  await world.wish(undefined)
  t.match(await world.move(), { phase: 'rollback', why: 'it was cancelled' })
  await world.report('pi-2', { removed: true })
  t.match(await world.move(), { phase: 'rollback' }, 'the other node has not confirmed')
  await world.report('pi-1', { released: true })
  t.equal(await world.move(), undefined)
  t.same((await world.volume()).spec, before.spec)
  t.match((await world.events('data')).join(), /VolumeMoveFailed the data stays where it was: it was cancelled/)
})

test('a move that cannot begin is refused with its reason', async (t) => {
  const world = await aFleet(t)
  const refused = async (node: string, reason: RegExp) => {
    await world.wish(node)
    t.equal(await world.move(), undefined)
    t.match((await world.events('data')).at(-1), reason)
    t.notOk(moveToAnnotation in ((await world.volume()).metadata.annotations ?? {}))
  }
  await refused('pi-9', /there is no node "pi-9"/)
  await refused('pi-1', /the volume is on node "pi-1"/)
  world.storage.receive('pi-2', { done: [], refused: [] })
  await refused('pi-2', /node "pi-2" runs an agent that does not move volumes/)
})

test('while the volume is held, pods with a controller are deleted and others are named', async (t) => {
  const world = await aFleet(t)
  await world.addPod('owned', 'data', 'pi-1')
  await world.addPod('bare', 'data', 'pi-1')
  await rewrite({ store: world.store, clock: world.clock }, 'pods', {
    key: { namespace: 'default', name: 'owned' },
    change: (pod) => ({
      ...pod,
      metadata: {
        ...pod.metadata,
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 's', uid: 'u', controller: true }],
      },
    }),
  })
  await world.wish('pi-2')
  const isThere = async (name: string) => {
    const pod = await world.store.get('pods', { namespace: 'default', name })
    return pod !== undefined && pod.metadata.deletionTimestamp === undefined
  }
  t.same([await isThere('owned'), await isThere('bare')], [true, true])
  await world.report('pi-2', { received: copy(1) })
  t.same([await isThere('owned'), await isThere('bare')], [false, true])
  t.match((await world.events('data')).join(), /pod "bare" has no controller that re-creates it: delete it/)
})
