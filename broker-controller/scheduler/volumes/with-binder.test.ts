/** The scheduler with the controllers that bind, protect and make claims: each reads what the others write. */
import { type Test, test } from 'tap'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { fakeHold } from '../../testing/fake-hold.ts'
import { onNodes, using } from '../../testing/pods-with-claims.ts'
import { type VolumeFleet, volumeFleet } from '../../testing/volume-fleet.ts'
import { scheduler } from '../scheduler.ts'

const { selectedNode, provisioner } = volumeAnnotations

async function opened(t: Test, ...nodes: readonly string[]): Promise<VolumeFleet> {
  const world = await volumeFleet(t, ...nodes)
  t.teardown(world.live())
  return world
}

const nodeOf = async (world: VolumeFleet, name: string) => (await world.pod(name))?.spec.nodeName

test('a delayed claim is bound to the volume that the scheduler chose, and its pod runs there', async (t) => {
  const world = await opened(t, 'pi-1', 'pi-2')
  await world.addVolume('disk', { storageClassName: 'fixed', ...onNodes('pi-2') })
  await world.addClaim('data', { storageClassName: 'fixed' })
  await world.pass(2)
  t.equal((await world.claim('data')).spec?.volumeName, undefined, 'no pod uses it yet')
  await world.addPods({ name: 'web', spec: using('data') })
  await world.pass(3)
  t.equal(await nodeOf(world, 'web'), 'pi-2')
  t.match(await world.claim('data'), { spec: { volumeName: 'disk' }, status: { phase: 'Bound' } })
})

test('the provisioner of a delayed claim is asked once a node is selected, and the pod waits for its volume', async (t) => {
  const world = await opened(t, 'pi-1', 'pi-2')
  await world.addClaim('data', { storageClassName: 'late' })
  await world.pass(2)
  t.equal((await world.claim('data')).metadata.annotations?.[provisioner], undefined)
  await world.addPods({ name: 'web', spec: using('data') })
  await world.pass(3)
  const claim = await world.claim('data')
  const node = claim.metadata.annotations?.[selectedNode] ?? ''
  t.match(claim.metadata.annotations, { [provisioner]: 'example.com/disk' })
  t.equal(await nodeOf(world, 'web'), undefined)
  await world.provision(claim, { storageClassName: 'late', ...onNodes(node) })
  await world.pass(3)
  t.equal(await nodeOf(world, 'web'), node)
  t.match(await world.claim('data'), { spec: { volumeName: `pvc-${claim.metadata.uid}` }, status: { phase: 'Bound' } })
})

test('a claim whose selected node is removed before its volume is made follows its pod to another node', async (t) => {
  const world = await opened(t, 'pi-1', 'pi-2')
  await world.addClaim('data', { storageClassName: 'late' })
  await world.addPods({ name: 'web', spec: using('data') })
  await world.pass(3)
  const selected = (await world.claim('data')).metadata.annotations?.[selectedNode] ?? ''
  world.silence(selected)
  await world.store.delete('nodes', { namespace: '', name: selected })
  await world.pass(30)
  const claim = await world.claim('data')
  const next = claim.metadata.annotations?.[selectedNode] ?? ''
  t.same(new Set([selected, next]), new Set(['pi-1', 'pi-2']))
  await world.provision(claim, { storageClassName: 'late', ...onNodes(next) })
  await world.pass(3)
  t.equal(await nodeOf(world, 'web'), next)
})

test('the claim of a generic ephemeral volume is made, provisioned where its pod will run, and bound', async (t) => {
  const world = await opened(t, 'pi-1')
  const accessModes = ['ReadWriteOnce']
  const spec = { accessModes, storageClassName: 'late', resources: { requests: { storage: '1Gi' } } }
  const scratch = { name: 'scratch', ephemeral: { volumeClaimTemplate: { spec } } }
  await world.addPods({ name: 'web', spec: { volumes: [scratch] } })
  await world.pass(3)
  const claim = await world.claim('web-scratch')
  t.equal(claim.metadata.annotations?.[selectedNode], 'pi-1')
  await world.provision(claim, { storageClassName: 'late', ...onNodes('pi-1') })
  await world.pass(3)
  t.equal(await nodeOf(world, 'web'), 'pi-1')
})

test('a pod that was given its node by hand has its delayed claims bound there', async (t) => {
  const world = await opened(t, 'pi-1', 'pi-2')
  await world.addVolume('there', { storageClassName: 'fixed', ...onNodes('pi-1') })
  await world.addVolume('here', { storageClassName: 'fixed', ...onNodes('pi-2') })
  await world.addClaim('data', { storageClassName: 'fixed' })
  await world.addClaim('logs', { storageClassName: 'late' })
  await world.addPods({ name: 'web', nodeName: 'pi-2', spec: using('data', 'logs') })
  await world.pass(3)
  t.match(await world.claim('data'), { spec: { volumeName: 'here' }, status: { phase: 'Bound' } })
  const logs = await world.claim('logs')
  t.match(logs.metadata.annotations, { [selectedNode]: 'pi-2', [provisioner]: 'example.com/disk' })
  await world.provision(logs, { storageClassName: 'late', ...onNodes('pi-2') })
  await world.pass(3)
  t.match(await world.claim('logs'), { status: { phase: 'Bound' } })
})

test('100 pods and as many local volumes, all at once: each claim has one volume, and nothing has to be decided again', async (t) => {
  const world = await opened(t, 'pi-1', 'pi-2')
  const numbers = Array.from({ length: 100 }, (_, number) => number)
  for (const number of numbers) {
    await world.addVolume(`disk-${number}`, { storageClassName: 'fixed', ...onNodes(number % 2 ? 'pi-1' : 'pi-2') })
    await world.addClaim(`data-${number}`, { storageClassName: 'fixed' })
  }
  await world.pass(2)
  await world.addPods(...numbers.map((number) => ({ name: `web-${number}`, spec: using(`data-${number}`) })))
  await world.pass(20)
  const pods = (await world.store.list('pods')).items
  t.equal(pods.filter(({ spec }) => spec.nodeName).length, numbers.length)
  const [claims, volumes] = [await world.claims(), await world.volumes()]
  t.equal(new Set(claims.map(({ spec }) => spec?.volumeName)).size, numbers.length)
  const crossed = claims.filter(({ metadata, spec }) => {
    const volume = volumes.find((one) => one.metadata.name === spec?.volumeName)
    return volume?.spec?.claimRef?.uid !== metadata.uid
  })
  t.same(crossed, [])
  const warnings = (await world.store.list('events')).items.filter(({ type }) => type === 'Warning')
  t.same(
    warnings.map(({ message }) => message),
    [],
  )
})

test('a second pod of a claim for one pod alone runs when the first is gone', async (t) => {
  const world = await opened(t, 'pi-1', 'pi-2')
  await world.addVolume('disk', { storageClassName: '', accessModes: ['ReadWriteOncePod'] })
  await world.addClaim('data', { storageClassName: '', accessModes: ['ReadWriteOncePod'] })
  await world.pass(3)
  await world.addPods({ name: 'one', spec: using('data') }, { name: 'two', spec: using('data') })
  await world.pass(3)
  t.ok(await nodeOf(world, 'one'))
  t.equal(await nodeOf(world, 'two'), undefined)
  await world.store.delete('pods', { namespace: 'default', name: 'one' })
  await world.pass(3)
  t.ok(await nodeOf(world, 'two'))
})

test('a free volume of a backup is not chosen for a new claim while its node may return its claim', async (t) => {
  const world = await volumeFleet(t, 'pi-1')
  const hold = fakeHold()
  hold.release('statefulsets')
  t.teardown(world.start(scheduler({ ...world, random: () => 0, hold })))
  await world.addVolume('disk', { storageClassName: 'fixed', ...onNodes('pi-1') })
  const [disk] = await world.volumes()
  if (disk === undefined) throw new Error('there is no volume')
  await world.store.updateStatus('persistentvolumes', {
    ...disk,
    status: { phase: 'Available' },
  })
  await world.addClaim('data', { storageClassName: 'fixed' })
  await world.addPods({ name: 'web', spec: using('data') })
  await world.pass(3)
  t.notOk((await world.volumes())[0]?.spec?.claimRef)
  hold.release('none')
  await world.pass(3)
  t.match((await world.volumes())[0], { spec: { claimRef: { name: 'data' } } })
})
