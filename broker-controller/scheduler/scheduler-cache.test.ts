import { test } from 'tap'
import { observationGate } from './scheduler-cache.ts'

test('what is observed during a decision is passed on after it, in order, also when it fails', async (t) => {
  const gate = observationGate()
  const seen: string[] = []
  const observeNode = gate.through<string>((node) => void seen.push(`node ${node}`))
  const observePod = gate.through<string>((pod) => void seen.push(`pod ${pod}`))
  observePod('a', undefined)
  t.same(seen, ['pod a'], 'at once')
  await gate.closedDuring(async () => {
    observePod('b', undefined)
    observeNode('c', undefined)
    t.same(seen, ['pod a'])
  })
  t.same(seen, ['pod a', 'pod b', 'node c'])
  const failing = gate.closedDuring(async () => {
    observePod('d', undefined)
    throw new Error('no decision')
  })
  await t.rejects(failing, { message: 'no decision' })
  t.same(seen.slice(3), ['pod d'])
})
