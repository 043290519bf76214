import { test } from 'tap'
import { doctorProcess } from './doctor-process.ts'

const program = (script: string) => ({ command: [process.execPath, '-e', script], args: ['--data-dir', '/data'] })
const report = `console.log(JSON.stringify({ kind: 'DoctorReport', args: process.argv.slice(1), pid: process.pid }))`

test('its report is given, also with findings, and once for all who wait', async (t) => {
  const doctor = doctorProcess(program(`${report}; process.exitCode = 1`))
  const [one, other] = await Promise.all([doctor(), doctor()])
  t.match(one, { args: ['doctor', '--output', 'json', '--data-dir', '/data'] })
  t.equal(one, other)
  t.not(((await doctor()) as { pid: number }).pid, (one as { pid: number }).pid, 'a later caller gets another one')
})

test('a doctor that fails, prints something else or does not end is an error', async (t) => {
  await t.rejects(doctorProcess(program(`throw new Error('broken')`))(), { message: 'The doctor printed no report' })
  await t.rejects(doctorProcess(program(`console.log('[]')`))(), { message: 'The doctor printed no report' })
  const endless = doctorProcess({ ...program('setInterval(() => 0, 1000)'), deadlineMs: 500 })
  await t.rejects(endless(), { message: 'The doctor did not end within 0.5 s' })
})
