import { test } from 'tap'
import { enforceable, unenforcedNews } from './kernel-limits.ts'

const all = { memoryLimit: true, swapLimit: true, pidsLimit: true, cpuCfsQuota: true }
const limits = { nanoCPUs: 5e8, memoryBytes: 64 * 2 ** 20, pids: 100 }

test('what the kernel can enforce is asked of it, and nothing is told', async (t) => {
  t.same(enforceable(limits, all), limits)
  t.same(unenforcedNews(limits, all), [])
  t.same(enforceable(limits, undefined), limits, 'nobody knows yet')
})

test('without a memory cgroup the limit is dropped, and the pod is told the remedy', async (t) => {
  const kernel = { ...all, memoryLimit: false, swapLimit: false }
  t.same(enforceable(limits, kernel), { ...limits, memoryBytes: 0 })
  t.match(unenforcedNews(limits, kernel), [
    { type: 'Warning', reason: 'MemoryLimitNotEnforced', message: /cgroup_enable=memory cgroup_memory=1/ },
  ])
  t.same(unenforcedNews({ ...limits, memoryBytes: 0 }, kernel), [], 'nothing was asked for')
})

test('so are a CPU quota and a limit of processes', async (t) => {
  const kernel = { ...all, pidsLimit: false, cpuCfsQuota: false }
  t.same(enforceable(limits, kernel), { nanoCPUs: 0, memoryBytes: limits.memoryBytes, pids: 0 })
  t.same(
    unenforcedNews(limits, kernel).map(({ reason }) => reason),
    ['CPULimitNotEnforced', 'PIDLimitNotEnforced'],
  )
})
