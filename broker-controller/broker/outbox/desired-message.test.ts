import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'tap'
import type { ConfigMap } from '../../../api/config-map.ts'
import { namedContents } from './desired-message.ts'

const map = (name: string, text: string): ConfigMap => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } },
  data: { text },
})

test('large contents are named in several turns of the event loop, and each of them once', async (t) => {
  const configMaps = Array.from({ length: 40 }, (_, at) => map(`m${at}`, `${at}`.padEnd(1_000_000, '.')))
  let [turns, isOver] = [0, false]
  const counting = async () => {
    for (; !isOver; turns++) await nextTurn()
  }
  const counted = counting()
  const first = await namedContents({ pods: new Map(), data: { configMaps } })
  isOver = true
  await counted
  t.ok(turns > 2, `${turns} turns`)
  t.equal(first.contents.size, 40)
  t.same((await namedContents({ pods: new Map(), data: { configMaps } })).names, first.names)
  const equal = await namedContents({ pods: new Map(), data: { configMaps: [map('m7', '7'.padEnd(1_000_000, '.'))] } })
  t.same(equal.names.configMaps, [first.names.configMaps?.[7]], 'an equal content has the same name')
})
