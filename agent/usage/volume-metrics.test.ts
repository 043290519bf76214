import { test } from 'tap'
import { metricsText } from '../../daemon/prometheus-text.ts'
import { volumeMetrics } from './volume-metrics.ts'

test('a volume has the size of its files, and the space of its pool', async (t) => {
  const pool = { id: 'p', capacityBytes: 100, availableBytes: 40, inTrash: 2 }
  const other = { id: 'q', capacityBytes: 900, availableBytes: 80 }
  const volumes = [{ claim: 'shop/data', pool: 'p', usedBytes: 7 }]
  const trash = [
    { pool: 'p', usedBytes: 5 },
    { pool: 'p', usedBytes: 6 },
    { pool: 'p' },
    { pool: 'gone', usedBytes: 9 },
  ]
  const text = [...metricsText(volumeMetrics({ pools: [pool, other], volumes, trash }))].join('')
  const labels = '{namespace="shop",persistentvolumeclaim="data"}'
  for (const line of [
    `kubelet_volume_stats_capacity_bytes${labels} 100`,
    `kubelet_volume_stats_available_bytes${labels} 40`,
    `kubelet_volume_stats_used_bytes${labels} 7`,
    'bramble_pool_capacity_bytes{pool="p"} 100',
    'bramble_pool_available_bytes{pool="p"} 40',
    'bramble_pool_trash_volumes{pool="p"} 2',
    'bramble_pool_trash_bytes{pool="p"} 11',
    'bramble_pool_capacity_bytes{pool="q"} 900',
    'bramble_pool_trash_bytes{pool="q"} 0',
  ])
    t.ok(text.includes(line), line)
})

test('without its pool nothing is reported', async (t) => {
  t.same([...volumeMetrics({ pools: [], volumes: [{ claim: 'shop/data', pool: 'p', usedBytes: 7 }], trash: [] })], [])
})

test('a claim of a driver has what its driver states, once for all its pods', async (t) => {
  const bytes = { available: 60, total: 100, used: 40 }
  const inodes = { available: 5, total: 9, used: 4 }
  const one = { volume: 'pv', claim: 'shop/data', bytes, inodes, condition: { abnormal: true, message: 'x' } }
  const drivers = [
    { podUID: 'a', ...one },
    { podUID: 'b', ...one },
    { podUID: 'b', volume: 'inline', bytes },
  ]
  const text = [...metricsText(volumeMetrics({ pools: [], volumes: [], trash: [], drivers }))].join('')
  const labels = '{namespace="shop",persistentvolumeclaim="data"}'
  for (const [name, value] of [
    ['capacity_bytes', 100],
    ['available_bytes', 60],
    ['used_bytes', 40],
    ['inodes', 9],
    ['inodes_free', 5],
    ['inodes_used', 4],
    ['health_status_abnormal', 1],
  ]) {
    const line = `kubelet_volume_stats_${name}${labels} ${value}`
    t.equal(text.split(line).length, 2, line)
  }
  t.notMatch(text, /bramble_pool/)
})
