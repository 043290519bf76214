import { test } from 'tap'
import { serviceShardOf, serviceShards } from './service-endpoints.ts'

test('the shard of a Service never changes, or nodes would read it from two messages', async (t) => {
  t.same([serviceShardOf('default', 'web'), serviceShardOf('default', 'kubernetes')], [11, 7])
})

test('Services are divided evenly', async (t) => {
  const counts = Array.from({ length: serviceShards }, () => 0)
  for (let index = 0; index < 1600; index++) {
    const shard = serviceShardOf('default', `web-${index}`)
    counts[shard] = (counts[shard] ?? 0) + 1
  }
  t.ok(Math.min(...counts) > 60 && Math.max(...counts) < 150, counts.join(' '))
})
