import { test } from 'tap'
import { startDockerd, whyNoDockerd } from './dockerd.ts'

test('a dockerd of a test runs containers, survives being killed, and leaves nothing', {
  skip: whyNoDockerd(),
}, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage('test/busybox:1', ['sh', '-c', 'trap exit TERM; sleep 1000 & wait'])
  const container = await dockerd.docker.createContainer({ Image: 'test/busybox:1' })
  await container.start()
  const { NetworkSettings } = await container.inspect()
  t.match(NetworkSettings.Networks['bridge']?.IPAddress, new RegExp(`^${dockerd.subnet}`))
  await dockerd.kill()
  await t.rejects(dockerd.docker.ping())
  await dockerd.start()
  const { State } = await container.inspect()
  t.equal(State.Running, false)
  await container.start()
  await dockerd.kill()
})
