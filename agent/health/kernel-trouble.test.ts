import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import type { KernelLine } from './kernel-log.ts'
import { kernelDeadlock, kernelTrouble, kernelTroubles } from './kernel-trouble.ts'

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
