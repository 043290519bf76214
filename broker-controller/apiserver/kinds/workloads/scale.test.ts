import { test } from 'tap'
import type { AnyObject } from '../../../../api/meta.ts'
import { problemText } from '../../../../api/problem.ts'
import { scaleView } from './scale.ts'

type Scaled = AnyObject & {
  readonly spec?: { readonly replicas?: number }
  readonly status?: { readonly replicas?: number }
}

const metadata = {
  ...{ name: 'web', namespace: 'default', uid: 'u', resourceVersion: '7', creationTimestamp: '2026-01-01T00:00:00Z' },
}
const workload = (more: Partial<Scaled> = {}): Scaled => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { ...metadata, labels: { app: 'web' }, managedFields: [] },
  ...more,
})
const view = scaleView<Scaled>(() => 'app=web')
const scale = (spec?: object): AnyObject => ({
  apiVersion: 'autoscaling/v1',
  kind: 'Scale',
  metadata,
  ...(spec && { spec }),
})

test('the Scale of a workload has its replicas, its selector and what identifies it', async (t) => {
  const head = { kind: 'Scale', apiVersion: 'autoscaling/v1' }
  t.same(view.show(workload({ spec: { replicas: 3 }, status: { replicas: 2 } })), {
    ...{ ...head, metadata, spec: { replicas: 3 }, status: { replicas: 2, selector: 'app=web' } },
  })
  t.same(view.show({ ...workload(), metadata: { name: 'web' } }), {
    ...{ ...head, metadata: { name: 'web' }, spec: { replicas: 0 }, status: { replicas: 0, selector: 'app=web' } },
  })
  t.same(scaleView<Scaled>(() => '').show(workload())['status'], { replicas: 0 }, 'nothing is selected')
})

test('a Scale changes the replicas only, which are a count', async (t) => {
  t.same(view.fields?.(scale({ replicas: 5 })), { spec: { replicas: 5 } })
  for (const none of [scale(), scale({})]) t.same(view.fields?.(none), { spec: { replicas: 0 } }, 'as in Go')
  const problems = (replicas: number) => view.problems(scale({ replicas })).map(problemText)
  for (const count of [0, 2 ** 31 - 1]) t.same(problems(count), [])
  t.same(problems(-1), ['spec.replicas: Invalid value: -1: must be greater than or equal to 0'])
  t.same(problems(2 ** 31), ['spec.replicas: Invalid value: 2147483648: must be less than or equal to 2147483647'])
})

test('the table shows what is wanted and what there is', async (t) => {
  const cells = (one: AnyObject) => view.table.cells(one, Date.parse('2026-01-01T00:01:00Z'))
  t.same(cells(view.show(workload({ spec: { replicas: 3 }, status: { replicas: 2 } }))), ['web', 3, 2, '60s'])
  t.same(cells(scale()), ['web', 0, 0, '60s'])
})
