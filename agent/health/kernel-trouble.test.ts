import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import type { KernelLine } from './kernel-log.ts'
import { kernelDeadlock, kernelDeadlockCheck, kernelTrouble, kernelTroubles } from './kernel-trouble.ts'

const hung = 'INFO: task dockerd:812 blocked for more than 120 seconds.'

test('lines about something stuck are recognized, others are not', async (t) => {
  t.match(kernelTrouble(hung), { reason: 'TaskHung', pid: 812, what: /dockerd \(process 812\) .* more than 120 s/ })
  t.match(kernelTrouble('watchdog: BUG: soft lockup - CPU#2 stuck for 26s! [kworker/2:1:93]'), {
    reason: 'ProcessorStuck',
  })
  t.match(kernelTrouble('rcu: INFO: rcu_preempt self-detected stall on CPU'), { reason: 'ProcessorStuck' })
  t.match(kernelTrouble('unregister_netdevice: waiting for lo to become free. Usage count = 1'), {
    reason: 'NetworkDeviceStuck',
  })
  t.equal(kernelTrouble('task scheduler started'), undefined)
  t.equal(kernelTrouble(`audit: someone wrote "${hung}"`), undefined)
})

test('a hung task is a condition as long as the kernel repeats itself or the task still waits', async (t) => {
  const clock = fakeClock()
  const stuck = new Set([812])
  const listeners: ((line: KernelLine) => void)[] = []
  const kernel = {
    subscribe: (listener: (line: KernelLine) => void) => void listeners.push(listener),
    readable: () => true,
  }
  const read = kernelTroubles({ kernel, isStuck: (pid) => stuck.has(pid), clock })
  const look = () => kernelDeadlock(read())
  const emit = (text: string, ageMs = 0) => {
    for (const listener of listeners) listener({ text, ageMs })
  }
  t.match(look(), { status: 'False', reason: 'KernelHasNoDeadlock' })
  emit(hung)
  emit(hung.replace('120', '241'))
  t.match(look(), { status: 'True', reason: 'TaskHung', message: /^dockerd .* 241 s: a disk/ })
  await clock.advance(3_600_000)
  t.match(look(), { status: 'True' }, 'the kernel has stopped logging it, the task still waits')
  stuck.clear()
  t.match(look(), { status: 'False' })
  emit(hung, 4 * 60_000)
  t.match(look(), { status: 'True' }, 'from before the agent was started, and not long ago')
  await clock.advance(60_000)
  t.match(look(), { status: 'False' })
  emit(hung, 20 * 60_000)
  t.match(look(), { status: 'False' }, 'that is history')
})

test('a machine whose kernel log cannot be read has no such condition', async (t) => {
  const kernel = { subscribe: () => undefined, readable: () => false }
  t.equal(kernelDeadlock(kernelTroubles({ kernel, isStuck: () => false, clock: fakeClock() })()), undefined)
})

test('a task that old kernels name without a prefix hangs too', (t) => {
  t.match(kernelTrouble('task jbd2/mmcblk0p2-8:95 blocked for more than 120 seconds.'), { reason: 'TaskHung', pid: 95 })
  t.end()
})

test('troubles are distinguished by kind and process, and the newest of each is kept, five at most', async (t) => {
  const clock = fakeClock()
  let emit: (line: KernelLine) => void = () => undefined
  const kernel = {
    subscribe: (listener: (line: KernelLine) => void) => {
      emit = listener
    },
    readable: () => true,
  }
  const read = kernelTroubles({ kernel, isStuck: () => false, clock })
  const task = (pid: number, seconds = 120) => `INFO: task dd:${pid} blocked for more than ${seconds} seconds.`
  const seen = () => read().troubles.map(({ reason, pid }) => `${reason} ${pid}`)
  for (const text of [task(1), 'BUG: soft lockup - CPU#2', task(2), 'nothing of note', task(1, 241)])
    emit({ text, ageMs: 0 })
  t.same(seen(), ['ProcessorStuck undefined', 'TaskHung 2', 'TaskHung 1'])
  t.match(kernelDeadlock(read()), {
    reason: 'TaskHung',
    message: /^a processor is stuck \(soft lockup\); dd \(process 2\) .*; dd \(process 1\) .* 241 s: a disk/,
  })
  for (const pid of [3, 4, 5, 6]) emit({ text: task(pid), ageMs: 0 })
  t.same(seen(), ['TaskHung 1', 'TaskHung 3', 'TaskHung 4', 'TaskHung 5', 'TaskHung 6'])
  for (const text of ['BUG: soft lockup - CPU#2', 'unregister_netdevice: waiting for lo to become free']) {
    emit({ text, ageMs: 0 })
  }
  t.same(seen().slice(-2), ['ProcessorStuck undefined', 'NetworkDeviceStuck undefined'])
})

test('a trouble without a process is over after five minutes', async (t) => {
  const clock = fakeClock()
  let emit: (line: KernelLine) => void = () => undefined
  const kernel = {
    subscribe: (listener: (line: KernelLine) => void) => {
      emit = listener
    },
    readable: () => true,
  }
  const read = kernelTroubles({ kernel, isStuck: () => true, clock })
  emit({ text: 'unregister_netdevice: waiting for veth1 to become free', ageMs: 0 })
  await clock.advance(299_999)
  t.match(read().troubles, [{ what: 'network device veth1 cannot be removed' }])
  await clock.advance(1)
  t.same(read().troubles, [])
})

test('the check reads the troubles every five seconds', async (t) => {
  const context = { settings: { highTemperatureCelsius: undefined }, wasWrong: false }
  const look = (isReadable: boolean) =>
    kernelDeadlockCheck.look({ kernelTroubles: () => ({ troubles: [], isReadable }) }, context)
  t.match(look(true), { status: 'False' })
  t.equal(look(false), undefined)
  t.equal(kernelDeadlockCheck.periodMs, 5000)
})
