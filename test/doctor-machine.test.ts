/** `bramble-agent doctor` on a machine that booted with systemd and logind. */
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { DoctorReportSchema } from '../agent/doctor/report.ts'
import { decode } from '../api/decode.ts'
import { bootMachine } from './support/machine.ts'
import { eventually } from './support/wait.ts'

const bundle = fileURLToPath(new URL('../bundle/bramble-agent.mjs', import.meta.url))
const unattended = '/usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf'

test('on a booted machine', async (t) => {
  const machine = await bootMachine(t, {
    name: 'pi-01',
    binds: [[process.execPath, '/usr/local/bin/node']],
    boardSerial: '10000000deadbeef',
  })
  await machine.copyIn(bundle, '/opt/bramble-agent.mjs')
  const doctor = async (args = '') => {
    const { code, stdout, stderr } = await machine.tryRun(`node /opt/bramble-agent.mjs doctor -o json ${args}`)
    const decoded = decode(DoctorReportSchema, JSON.parse(stdout === '' ? '{}' : stdout))
    if (!decoded.ok) throw new Error(`Not a report: ${stdout}${stderr}`)
    const { findings, ...rest } = decoded.value
    return { ...rest, code, of: (check: string) => findings.find((one) => one.check === check) }
  }
  /** Again and again, for a machine that is busy may take longer to answer than the doctor waits. */
  const doctorOnce = (isSo: (found: Awaited<ReturnType<typeof doctor>>) => boolean) =>
    eventually(
      'the doctor finds it so',
      async () => {
        const found = await doctor()
        return isSo(found) ? found : undefined
      },
      { withinMs: 60_000 },
    )
  const granted = async () =>
    (
      await machine.run(
        'busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager InhibitDelayMaxUSec',
      )
    ).trim()

  await t.test('Docker, the unit that is missing, and who else sets the time for pods are seen', async (t) => {
    await machine.write(unattended, '[Login]\nInhibitDelayMaxSec=20\n')
    await machine.run('systemctl kill -s HUP systemd-logind')
    const found = await doctorOnce(
      ({ of }) =>
        ['docker', 'hostname', 'journal'].every((check) => of(check)?.verdict === 'ok') &&
        ['agent-service', 'shutdown-delay'].every((check) => of(check)?.verdict === 'warning') &&
        /20 s/.test(of('shutdown-delay')?.found ?? ''),
    )
    t.match(found.of('hostname'), { found: /pi-01/ })
    t.match(found.of('agent-service'), { found: /not-found/ })
    t.match(found.of('shutdown-delay'), {
      found: /20 s.*unattended-upgrades-logind-maxdelay\.conf/,
      fix: /zz-bramble\.conf/,
    })
  })

  await t.test('a drop-in of ours wins, and logind grants it at once', async (t) => {
    const fixed = await eventually('it is put right', async () => {
      const found = await doctor('--fix --yes')
      return found.fixed.some(({ error }) => error === undefined) && found
    })
    t.match(fixed.fixed, [{ check: 'shutdown-delay', what: /zz-bramble\.conf/, error: undefined }])
    t.equal(fixed.restartNeeded, false)
    const after = await doctorOnce(({ of }) => of('shutdown-delay')?.verdict === 'ok')
    t.match(after.of('shutdown-delay'), { found: /30 s.*zz-bramble\.conf, which wins over .*unattended/ })
    t.equal(await granted(), 't 30000000')
    t.same((await doctor('--fix --yes')).fixed, [], 'there is nothing left to do')
  })

  await t.test('a file that logind has not read is reported, and read', async () => {
    await machine.write('/etc/systemd/logind.conf.d/zz-bramble.conf', '[Login]\nInhibitDelayMaxSec=45\n')
    await doctorOnce(({ of }) => /has not yet read/.test(of('shutdown-delay')?.found ?? ''))
    await eventually('it is granted', async () => {
      await doctor('--fix --yes')
      return (await granted()) === 't 45000000'
    })
  })

  await t.test('a unit that is there is looked at', async (t) => {
    // It never notifies its watchdog, and runs on while the doctor looks, however long that takes.
    const unit = '[Service]\nExecStart=/bin/sleep infinity\nWatchdogSec=900s\n[Install]\nWantedBy=multi-user.target\n'
    await machine.write('/etc/systemd/system/bramble-agent.service', unit)
    await machine.run('systemctl daemon-reload && systemctl start bramble-agent')
    const disabled = await doctorOnce(
      ({ of }) => of('agent-watchdog')?.verdict === 'ok' && of('agent-service')?.verdict === 'problem',
    )
    t.match(disabled.of('agent-service'), { verdict: 'problem', remedy: /systemctl enable/ })
    t.match(disabled.of('agent-watchdog'), { verdict: 'ok', found: /900 s/ })
    await machine.run('systemctl enable bramble-agent')
    await doctorOnce((found) => found.of('agent-service')?.verdict === 'ok')
  })
})
