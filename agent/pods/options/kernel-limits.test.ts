import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { appArmorRefusal, enforceable, unenforcedEvents } from './kernel-limits.ts'

const all = { memoryLimit: true, swapLimit: true, pidsLimit: true, cpuCfsQuota: true }
const limits = { nanoCPUs: 5e8, memoryBytes: 64 * 2 ** 20, pids: 100 }

test('limits that the kernel can enforce are passed on without an Event', async (t) => {
  t.same(enforceable(limits, all), limits)
  t.same(unenforcedEvents(limits, all), [])
  t.same(enforceable(limits, undefined), limits, 'not known yet')
})

test('without a memory cgroup the limit is dropped, with an Event that names the remedy', async (t) => {
  const kernel = { ...all, memoryLimit: false, swapLimit: false }
  t.same(enforceable(limits, kernel), { ...limits, memoryBytes: 0 })
  t.match(unenforcedEvents(limits, kernel), [
    { type: 'Warning', reason: 'MemoryLimitNotEnforced', message: /cgroup_enable=memory cgroup_memory=1/ },
  ])
  t.same(unenforcedEvents({ ...limits, memoryBytes: 0 }, kernel), [], 'nothing was asked for')
})

test('so are a CPU quota and a limit of processes', async (t) => {
  const kernel = { ...all, pidsLimit: false, cpuCfsQuota: false }
  t.same(enforceable(limits, kernel), { nanoCPUs: 0, memoryBytes: limits.memoryBytes, pids: 0 })
  t.same(
    unenforcedEvents(limits, kernel).map(({ reason }) => reason),
    ['CPULimitNotEnforced', 'PIDLimitNotEnforced'],
  )
})

test('a pod that AppArmor is to guard is refused where there is none', async (t) => {
  const guarded = (type: string) =>
    aPod({ containers: [{ name: 'main', image: 'busybox', securityContext: { appArmorProfile: { type } } }] })
  const without = { ...all, appArmor: false }
  const refusal = { reason: 'AppArmor', message: 'Cannot enforce AppArmor: AppArmor is not enabled on the host' }
  t.same(appArmorRefusal(guarded('RuntimeDefault'), without), refusal)
  const securityContext = { appArmorProfile: { type: 'Localhost', localhostProfile: 'web' } }
  t.same(appArmorRefusal(aPod({ spec: { securityContext } }), without), refusal)
  t.equal(appArmorRefusal(guarded('Unconfined'), without), undefined)
  t.equal(appArmorRefusal(aPod(), without), undefined)
  t.equal(appArmorRefusal(guarded('RuntimeDefault'), { ...all, appArmor: true }), undefined)
  t.equal(appArmorRefusal(guarded('RuntimeDefault'), undefined), undefined, 'not known yet')
})
