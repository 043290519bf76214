import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { logindDouble } from '../../testing/logind-double.ts'
import { noDBus } from '../../testing/private-bus.ts'
import { doctorSystemd } from './systemd.ts'

test('logind has read its files when it was made to, however busy the machine', { skip: noDBus }, async (t) => {
  const double = await logindDouble()
  t.teardown(() => double.remove())
  const systemd = doctorSystemd(double.root, 60_000)
  t.equal(await systemd.logindDelaySeconds(), 5)
  const folder = join(double.root, 'etc/systemd/logind.conf.d')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'zz-bramble.conf'), '[Login]\nInhibitDelayMaxSec=30\n')
  double.reloadMs = 300
  await systemd.reloadLogind()
  t.equal(await systemd.logindDelaySeconds(), 30)
  t.equal(double.reloads, 1)
})
