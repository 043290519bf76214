import { type Test, test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import type { KernelLine } from '../health/kernel-log.ts'
import { aContainer } from '../testing/builders.ts'
import { fakeRuntime } from '../testing/fake-runtime.ts'
import { oomWatch, parseOomKill } from './oom-watch.ts'

const id = 'cf716009675b8ffdb58e497a9bf6d4053f0d8687a9d1f3a56783a8553bf873f1'
const line = (scope: string, group = `/docker/${id}`, task = 'python3') =>
  `oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,${scope},task_memcg=${group},task=${task},pid=4711,uid=0`

test('a line of the kernel names the victim and the limit', async (t) => {
  t.same(parseOomKill(line('oom_memcg=/lab/pi1')), {
    victim: 'python3',
    pid: 4711,
    limitOf: '/lab/pi1',
    group: `/docker/${id}`,
  })
  t.match(parseOomKill(line('global_oom')), { limitOf: undefined, pid: 4711 })
  t.match(parseOomKill(line('oom_memcg=/')), { limitOf: undefined })
  t.match(parseOomKill(line('global_oom', '/a', 'odd,pid=1,uid=2')), { victim: 'odd,pid=1,uid=2', pid: 4711 })
  t.equal(parseOomKill('python3 invoked oom-killer: gfp_mask=0xcc0'), undefined)
})

function machine(t: Test) {
  const clock = fakeClock()
  const events: string[] = []
  let emit: (line: KernelLine) => void = () => undefined
  const unread: KernelLine[] = []
  const log = quietLog(t)
  const watch = oomWatch({
    kernel: {
      subscribe: (listener) => {
        emit = listener
      },
      look: () => unread.splice(0).forEach(emit),
    },
    event: ({ type, reason, message }) => events.push(`${type} ${reason}: ${message}`),
    clock,
    log,
  })
  const write = (text: string, more: Partial<KernelLine> = {}) => unread.push({ text, ageMs: 0, ...more })
  return { clock, events, log, watch, write, unread, flush: () => unread.splice(0).forEach(emit) }
}

test('a machine out of memory is an Event with the victim; a limit that was reached is not', async (t) => {
  const { clock, events, write, flush } = machine(t)
  await clock.advance(1_000)
  write(line('global_oom'))
  write(line('oom_memcg=/docker/x'))
  flush()
  t.same(events, ['Warning SystemOOM: System OOM encountered, victim process: python3, pid: 4711'])
})

test('a kill before the start is not reported', async (t) => {
  const { clock, events, write, flush } = machine(t)
  await clock.advance(1_000)
  write(line('global_oom'), { ageMs: 1_001 })
  flush()
  t.same(events, [])
})

test('a container killed by a limit outside of it is OOM killed, whatever the engine reports', async (t) => {
  const { clock, watch, write } = machine(t)
  const runtime = fakeRuntime(clock)
  const container = (state: 'exited' | 'running', exitCode: number, of = id) => ({
    ...runtime,
    listContainers: async () => [aContainer({ id: of, state, exitCode })],
  })
  const oomKills = async (engine: ReturnType<typeof container>) =>
    (await watch.withOomKills(engine).listContainers()).map(({ oomKilled }) => oomKilled)
  write(line('oom_memcg=/lab', `/lab/${id}`))
  t.same(await oomKills(container('exited', 137)), [true], 'the line is read when it is asked')
  t.same(await oomKills(container('exited', 1)), [false], 'it ended by itself after a child was killed')
  t.same(await oomKills(container('running', 0)), [false])
  t.same(await oomKills(container('exited', 137, 'e'.repeat(64))), [false])
})

test('a kill is logged with its victim, and its limit if one was reached', async (t) => {
  const { log, events, write, flush } = machine(t)
  write('oom-kill: no summary')
  write(`python3: ${line('global_oom')}`)
  write(line('global_oom', `/docker/${id}`), { ageMs: 0 })
  write(line('oom_memcg=/lab', '/lab/x'))
  flush()
  t.equal(events.length, 1)
  t.match(log.lines, [
    {
      level: 'warn',
      message: 'Process killed: out of memory',
      facts: { victim: 'python3', pid: 4711, limitOf: undefined },
    },
    { level: 'warn', facts: { limitOf: '/lab', group: '/lab/x' } },
  ])
  t.equal(log.lines.length, 2)
})

test('a kill since the start is reported, by the time of the kernel', async (t) => {
  const { clock, events, write, flush } = machine(t)
  await clock.advance(1_000)
  write(line('global_oom'), { ageMs: 1_000 })
  flush()
  t.equal(events.length, 1)
})

test('the log of the kernel is read for containers that were killed, and for no others', async (t) => {
  const { clock, watch, write, unread } = machine(t)
  const runtime = fakeRuntime(clock)
  const list = async (...found: readonly (readonly ['exited' | 'running', number])[]) => {
    const listContainers = async () => found.map(([state, exitCode], i) => aContainer({ id: `${i}`, state, exitCode }))
    await watch.withOomKills({ ...runtime, listContainers }).listContainers()
    return unread.length
  }
  write(line('global_oom', '/docker/short-id'))
  t.equal(await list(['exited', 1], ['running', 137]), 1)
  t.equal(await list(['exited', 0], ['exited', 137]), 0)
})

test('the last thousand kills are remembered', async (t) => {
  const { clock, watch, write, flush } = machine(t)
  const idOf = (n: number) => n.toString(16).padStart(64, '0')
  const oomKilled = async (n: number) => {
    const listContainers = async () => [aContainer({ id: idOf(n), state: 'exited', exitCode: 137 })]
    return (await watch.withOomKills({ ...fakeRuntime(clock), listContainers }).listContainers())[0]?.oomKilled
  }
  for (let n = 0; n < 1_000; n++) write(line('oom_memcg=/x', `/docker/${idOf(n)}`))
  flush()
  t.equal(await oomKilled(0), true)
  write(line('oom_memcg=/x', `/docker/${idOf(1_000)}`))
  flush()
  t.same([await oomKilled(0), await oomKilled(1), await oomKilled(1_000)], [false, true, true])
})
