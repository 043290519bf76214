import { test } from 'tap'
import type { Container } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { Target } from '../probes/targets.ts'
import type { PodEvent } from '../record/pod-events.ts'
import { type Hook, hookFailed, runHook } from './hooks.ts'

const main: Container = { name: 'main', image: 'app:1', env: [{ name: 'PORT', value: '80' }] }
const { signal } = new AbortController()

function hookWorld() {
  const asked: Target[] = []
  const commands: (readonly string[])[] = []
  const needs = {
    runtime: {
      exec: async (_: string, command: readonly string[]) => {
        commands.push(command)
        return { exitCode: 0, output: '' }
      },
    },
    network: {
      ask: async (target: Target) => {
        asked.push(target)
        return { result: 'success', message: '' } as const
      },
    },
    clock: fakeClock(),
  }
  const run = (hook: Hook) =>
    runHook(needs, { hook, container: main, id: 'one', podIP: '10.0.0.1', timeoutMs: 10_000, signal })
  return { asked, commands, run }
}

test('a hook asks over HTTP as a hook, and its command is passed on as it is', async (t) => {
  const { asked, commands, run } = hookWorld()
  await run({ httpGet: { port: 80, path: '/begun' } })
  t.match(asked, [{ kind: 'http', host: '10.0.0.1', path: '/begun', isHook: true }])
  await run({ exec: { command: ['begin', '$(PORT)'] } })
  t.same(commands, [['begin', '$(PORT)']])
})

test('a hook whose port has no number fails with the name of the port', async (t) => {
  const { asked, run } = hookWorld()
  t.same(await run({ httpGet: { port: 'web' } }), {
    result: 'failure',
    message: 'port web not found in container main',
  })
  t.same(asked, [])
})

test('the Event of a failed hook has no output of the command, which may contain a Secret', async (t) => {
  const events: PodEvent[] = []
  const log = quietLog(t)
  const recordEvent = (_: unknown, event: PodEvent) => void events.push(event)
  hookFailed({ recordEvent, log }, aPod({ name: 'web' }), main, 'PostStartHook', 'password: 1234')
  t.same(events, [
    { type: 'Warning', reason: 'FailedPostStartHook', message: 'PostStartHook failed', containerName: 'main' },
  ])
})
