import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { noDBus } from '../../testing/private-bus.ts'
import { systemdDouble } from '../../testing/systemd-double.ts'
import { BusError, openSystemBus } from './system-bus.ts'
import { systemdUnits } from './systemd-units.ts'

test("a service is asked after and restarted through systemd's own interface", { skip: noDBus }, async (t) => {
  const systemd = await systemdDouble()
  t.teardown(() => systemd.remove())
  const services = systemdUnits({ root: systemd.root })
  t.equal(services.isAvailable(), true)
  t.same(await services.state('docker.service'), { load: 'loaded', active: 'active' })
  systemd.unit = { load: 'masked', active: 'inactive' }
  t.same(await services.state('docker.service'), { load: 'masked', active: 'inactive' })
  await services.restart('docker.service')
  t.same(systemd.restarted, ['docker.service replace'])
  await t.rejects(services.restart('other.service'), { code: 'org.freedesktop.systemd1.NoSuchUnit' })
})

test('a systemd that does not answer does not block the caller', { skip: noDBus }, async (t) => {
  const systemd = await systemdDouble()
  t.teardown(() => systemd.remove())
  systemd.silent = true
  const services = systemdUnits({ root: systemd.root, deadlineMs: 2_000 })
  await t.rejects(services.state('docker.service'), { name: 'BusError', message: /Cannot call LoadUnit/ })
  await t.rejects(services.restart('docker.service'), BusError)
})

test('without a bus, or with one that is silent, there is an error in time', async (t) => {
  // Not in the test's own folder: a socket's name has room for a hundred letters only.
  const folder = await mkdtemp(join(tmpdir(), 'bramble-bus-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  t.equal(systemdUnits({ root: folder }).isAvailable(), false)
  await t.rejects(openSystemBus({ socketPath: join(folder, 'none') }), { name: 'BusError', message: /none/ })
  const socketPath = join(folder, 's')
  const mute = createServer((socket) => socket.on('error', () => undefined).resume())
  await new Promise<void>((resolve) => mute.listen(socketPath, resolve))
  await t.rejects(openSystemBus({ socketPath, deadlineMs: 200 }), /Cannot connect to the system bus/)
  await new Promise((resolve) => mute.close(resolve))
})
