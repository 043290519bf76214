import { test } from 'tap'
import type { PodTemplateSpec } from '../../../../api/pod.ts'
import { isSameTemplate } from './template-hash.ts'

type Term = { readonly namespaceSelector?: object }
const template = (term: Term, more: Partial<PodTemplateSpec['spec']> = {}): PodTemplateSpec => ({
  metadata: { labels: { app: 'web' } },
  spec: {
    containers: [{ name: 'main', image: 'nginx:1.27' }],
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'web' } }, ...term },
        ],
      },
    },
    ...more,
  },
})

test('an empty selector is no absent one: it selects everything', async (t) => {
  t.notOk(isSameTemplate(template({}), template({ namespaceSelector: {} })))
})

test('an empty map or list is an absent one', async (t) => {
  t.ok(isSameTemplate(template({}), template({}, { nodeSelector: {}, tolerations: [], initContainers: [] })))
  const container = { name: 'main', image: 'nginx:1.27', resources: {}, env: [] }
  t.ok(isSameTemplate(template({}), template({}, { containers: [container] })))
  t.notOk(isSameTemplate(template({}), template({}, { nodeSelector: { disk: 'ssd' } })))
})
