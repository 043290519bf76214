/** Objects that are converted, as large and as many as there may be, hold the event loop for 100 ms at most. */
import { test } from 'tap'
import { systemClock } from '../../../daemon/clock.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { budgetMs, turnCost } from '../../../daemon/testing/turn-budget.ts'
import { frozenCopy } from '../../store/frozen/frozen-copy.ts'
import type { AnyStored } from '../../store/store.ts'
import { aConversionWebhook } from '../../testing/conversion-webhook.ts'
import { conversionCalls } from './conversion-calls.ts'
import { convertedObjects } from './converted-objects.ts'

const apiVersion = 'example.com/v2'
const any = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const
const conversion = {
  definition: 'shops.example.com',
  client: {},
  reviewVersions: ['v1'],
  schemas: new Map([
    ['example.com/v1', any],
    [apiVersion, any],
  ]),
  storedVersion: 'example.com/v1',
}

test('the largest object, and a long list, are converted in time', async (t) => {
  const caller = aConversionWebhook()
  const needs = { caller, clock: systemClock, registry: metricsRegistry() }
  const together = conversionCalls(needs, new AbortController().signal)
  const largest = anObject(
    'largest',
    Array.from({ length: 8_000 }, (_, number) => ({ text: `${number}`.padEnd(170, 'x') })),
  )
  const many = Array.from({ length: 3_000 }, (_, number) => anObject(`shop-${number}`, [{ text: 'x'.repeat(1_000) }]))
  const cases = [
    ['the largest object', [largest]],
    ['a long list', many],
  ] as const
  for (const [what, objects] of cases) {
    const bytes = JSON.stringify(objects).length
    const act = async () => {
      const view = convertedObjects({
        apiVersion,
        together: (given) => together(given, apiVersion, conversion),
        clock: systemClock,
        onKept: () => undefined,
      })
      return (await view.all(objects)).length
    }
    const { ms, result } = await turnCost({ what, bytes, act })
    t.equal(result, objects.length)
    t.ok(ms <= budgetMs, `${what} (${bytes} bytes): ${ms.toFixed(0)} ms`)
  }
})

function anObject(name: string, items: readonly object[]): AnyStored {
  const metadata = {
    name,
    namespace: 'default',
    uid: name,
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
  }
  return frozenCopy({ apiVersion: 'example.com/v1', kind: 'Shop', metadata, spec: { items } })
}
