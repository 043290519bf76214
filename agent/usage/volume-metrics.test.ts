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
