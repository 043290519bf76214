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

test('the kernel tells whom it killed, and for whose limit', async (t) => {
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
  let tell: (line: KernelLine) => void = () => undefined
  const unread: KernelLine[] = []
  const log = quietLog(t)
  const watch = oomWatch({
    kernel: {
      subscribe: (listener) => {
        tell = listener
      },
      readable: () => true,
      look: () => unread.splice(0).forEach(tell),
    },
    event: ({ type, reason, message }) => events.push(`${type} ${reason}: ${message}`),
    clock,
    log,
  })
  const write = (text: string, more: Partial<KernelLine> = {}) => unread.push({ text, ageMs: 0, ...more })
  return { clock, events, watch, write, tell: () => unread.splice(0).forEach(tell) }
}

test('a machine out of memory is told with the victim; a limit that was reached is not the machine', async (t) => {
  const { clock, events, write, tell } = machine(t)
  await clock.advance(1_000)
  write(line('global_oom'))
  write(line('oom_memcg=/docker/x'))
  tell()
  t.same(events, ['Warning SystemOOM: System OOM encountered, victim process: python3, pid: 4711'])
})

test('what happened before we were there is not told', async (t) => {
  const { clock, events, write, tell } = machine(t)
  await clock.advance(1_000)
  write(line('global_oom'), { ageMs: 1_001 })
  tell()
  t.same(events, [])
})

test('a container killed for a limit outside of it was killed for memory, whatever the engine says', async (t) => {
  const { clock, watch, write } = machine(t)
  const runtime = fakeRuntime(clock)
  const container = (state: 'exited' | 'running', exitCode: number, of = id) => ({
    ...runtime,
    listContainers: async () => [aContainer({ id: of, state, exitCode })],
  })
  const told = async (engine: ReturnType<typeof container>) =>
    (await watch.knowing(engine).listContainers()).map(({ oomKilled }) => oomKilled)
  write(line('oom_memcg=/lab', `/lab/${id}`))
  t.same(await told(container('exited', 137)), [true], 'the line is read when it is asked')
  t.same(await told(container('exited', 1)), [false], 'it ended by itself after a child was killed')
  t.same(await told(container('running', 0)), [false])
  t.same(await told(container('exited', 137, 'e'.repeat(64))), [false])
})
