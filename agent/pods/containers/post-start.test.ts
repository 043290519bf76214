import { test } from 'tap'
import type { Container } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { warningsDuring } from '../../../daemon/testing/process-warnings.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { podRecords } from '../record/pod-records.ts'
import { startPostStart } from './post-start.ts'

test('thirty postStart hooks at once, one to a pod, make the process emit no warning', async (t) => {
  const clock = fakeClock()
  const main: Container = { name: 'main', image: 'app:1', lifecycle: { postStart: { sleep: { seconds: 5 } } } }
  const ended: string[] = []
  const records = podRecords()
  const needs = {
    records,
    runtime: { exec: async () => ({ exitCode: 0, output: '' }) },
    network: { ask: async () => ({ result: 'success', message: '' }) as const },
    hostIP: () => undefined,
    clock,
    log: quietLog(t),
    recordEvent: () => undefined,
    again: (uid: string) => void ended.push(uid),
  }
  const warnings = await warningsDuring(async () => {
    for (let i = 0; i < 30; i++) {
      const uid = `uid-${i}`
      records.of(uid)
      startPostStart(needs, aPod({ name: uid, uid, containers: [main] }), main, `id-${i}`)
    }
    await clock.settle()
  })
  t.same(warnings, [])
  t.equal(ended.length, 0, 'they are under way')
  t.ok(records.get('uid-29')?.postStarts.has('id-29'))
  await clock.advance(5_000)
  t.equal(ended.length, 30)
  t.equal(records.get('uid-29')?.postStarts.size, 0)
})
