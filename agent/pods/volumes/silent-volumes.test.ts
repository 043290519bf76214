import { test } from 'tap'
import { fakeVolumes } from '../../testing/fake-volumes.ts'
import { nodeInMemory, podRunning } from '../../testing/node-in-memory.ts'

const nas = 'the file system mounted at /mnt/nas (nfs4, nas:/export) does not answer'

function onDisk(name: string, path: string) {
  const pod = podRunning(name)
  return { ...pod, spec: { ...pod.spec, volumes: [{ name: 'data', hostPath: { path } }] } }
}

test('a running pod gets one Event when its volume stops answering, and one when it answers again', async (t) => {
  const volumes = fakeVolumes()
  const { clock, world } = nodeInMemory(t, { volumes })
  world.want(onDisk('photos', '/mnt/nas/photos'), onDisk('local', '/srv'), podRunning('other'))
  const events = () => world.eventTexts().filter((text) => /^Volume/.test(text))
  await clock.advance(300_000)
  t.same(events(), [])
  volumes.silent.set('/mnt/nas/photos', nas)
  await clock.advance(600_000)
  t.same(events(), [`VolumeNotResponding: volume "data": ${nas}`], 'once, not with each check')
  volumes.silent.clear()
  await clock.advance(120_000)
  t.same(events().slice(1), ['VolumeResponding: volume "data" answers again'])
  volumes.silent.set('/mnt/nas/photos', nas)
  await clock.advance(120_000)
  t.equal(events().length, 3)
  world.want()
  await clock.advance(120_000)
  t.equal(events().length, 3, 'a pod that is deleted gets none')
})

test('the volume of a claim and a share of a pod are checked where they are mounted', async (t) => {
  const volumes = fakeVolumes()
  const { clock, world } = nodeInMemory(t, { volumes })
  const pod = podRunning('photos')
  const nfs = { server: 'nas', path: '/export' }
  world.want({ ...pod, spec: { ...pod.spec, volumes: [{ name: 'data', nfs }] } })
  const path = '/run/bramble/x/shares/pv'
  volumes.placedAt = async (_, name) => (name === 'data' ? path : undefined)
  volumes.silent.set(path, nas)
  await clock.advance(300_000)
  const events = world.eventTexts().filter((text) => /^Volume/.test(text))
  t.same(events, [`VolumeNotResponding: volume "data": ${nas}`])
})

test('a volume that cannot be checked does not end the checks of the others', async (t) => {
  const volumes = fakeVolumes()
  let fails = true
  volumes.silence = async () => {
    if (fails) throw new Error('EMFILE: too many open files')
    return { why: nas }
  }
  const { clock, log, world } = nodeInMemory(t, { volumes })
  world.want(onDisk('photos', '/mnt/nas'))
  await clock.advance(90_000)
  t.equal(log.messages('warn').at(-1), 'Volumes of running pods not checked')
  fails = false
  await clock.advance(60_000)
  t.ok(world.eventTexts().some((text) => text.startsWith('VolumeNotResponding')))
})

test('containers with a folder that was replaced on its server start again, once all pods were checked', async (t) => {
  const volumes = fakeVolumes()
  const { clock, world } = nodeInMemory(t, { volumes })
  const mounting = (name: string, restartPolicy: 'Always' | 'Never') => {
    const pod = onDisk(name, '/mnt/nas/photos')
    const [main] = pod.spec.containers
    if (main === undefined) throw new Error('no container')
    const volumeMounts = [{ name: 'data', mountPath: '/data' }]
    return {
      ...pod,
      spec: {
        ...pod.spec,
        restartPolicy,
        containers: [
          { ...main, volumeMounts },
          { ...main, name: 'other' },
        ],
      },
    }
  }
  world.want(mounting('a', 'Always'), mounting('b', 'Always'), mounting('job', 'Never'))
  await clock.advance(90_000)
  const restarts = (name: string) =>
    (world.status(name)?.containerStatuses ?? []).map((one) => `${one.name} ${one.restartCount}`).sort()
  t.same(restarts('a'), ['main 0', 'other 0'])
  const stale = 'the folder was removed or replaced on the server: Stale file handle'
  volumes.silent.set('/mnt/nas/photos', stale)
  volumes.replaced.add('/mnt/nas/photos')
  const { place } = volumes
  volumes.place = async (...given) => {
    volumes.silent.clear()
    volumes.replaced.clear()
    return await place(...given)
  }
  await clock.advance(180_000)
  for (const name of ['a', 'b']) t.same(restarts(name), ['main 1', 'other 0'], name)
  t.same(restarts('job'), ['main 0', 'other 0'], 'its policy is Never')
})
