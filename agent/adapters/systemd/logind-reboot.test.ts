import { type Test, test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { logindDouble } from '../../testing/logind-double.ts'
import { noDBus } from '../../testing/private-bus.ts'
import { logind } from './logind.ts'
import { logindReboot } from './logind-reboot.ts'

async function aLogind(t: Test) {
  const double = await logindDouble()
  t.teardown(() => double.remove())
  return { double, machine: logindReboot({ root: double.root, deadlineMs: 60_000 }) }
}

test('while another program blocks shutdowns a reboot fails with its reason, a delay lock does not prevent it', {
  skip: noDBus,
}, async (t) => {
  const { double, machine } = await aLogind(t)
  const session = await logind({ root: double.root }).open({ preparing: () => undefined, changed: () => undefined })
  t.teardown(session.close)
  const lock = await session.takeLock()
  t.teardown(async () => lock.release())
  double.isBlocked = true
  await t.rejects(machine.reboot(), { message: 'apt blocks shutdowns: An upgrade is under way' })
  t.same(double.reboots, [])
  double.isBlocked = false
  await machine.reboot()
  t.same(double.reboots, ['Reboot false'], 'no person is asked for authorization')
})

test('a machine without logind gives the reason', { skip: noDBus }, async (t) => {
  await t.rejects(logindReboot({ root: testFolder(t) }).reboot(), { message: /no system bus with logind/ })
  const { double, machine } = await aLogind(t)
  await double.bus.stop()
  await t.rejects(machine.reboot(), { name: 'BusError' })
})
