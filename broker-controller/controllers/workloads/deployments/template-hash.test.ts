import { test } from 'tap'
import type { PodTemplateSpec } from '../../../../api/pod.ts'
import { isSameTemplate, templateHash } from './template-hash.ts'

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

test('an empty selector is not an absent one: it selects everything', async (t) => {
  t.notOk(isSameTemplate(template({}), template({ namespaceSelector: {} })))
})

test('a variable without a value is an empty one, and so is each field that Go leaves out', async (t) => {
  const withContainer = (more: Partial<PodTemplateSpec['spec']['containers'][0]>) =>
    template({}, { containers: [{ name: 'main', image: 'nginx:1.27', ...more }] })
  t.ok(isSameTemplate(withContainer({ env: [{ name: 'A', value: '' }] }), withContainer({ env: [{ name: 'A' }] })))
  t.ok(isSameTemplate(withContainer({ stdin: false, workingDir: '', ports: [] }), withContainer({})))
  t.ok(isSameTemplate(template({}), template({}, { hostNetwork: false, hostname: '' })))
  t.notOk(isSameTemplate(template({}), template({}, { automountServiceAccountToken: false })), 'that is a choice')
  t.notOk(isSameTemplate(withContainer({ env: [{ name: 'A', value: '' }] }), withContainer({})))
})

test('what limits and the network of the host imply makes no other template', async (t) => {
  const limits = { cpu: '1' }
  const on = (ports: object, resources: object) =>
    template(
      {},
      { hostNetwork: true, containers: [{ name: 'main', ports: [{ containerPort: 80, ...ports }], resources }] },
    )
  t.ok(isSameTemplate(on({}, { limits }), on({ hostPort: 80 }, { limits, requests: limits })))
  t.notOk(isSameTemplate(on({}, { limits }), on({}, { limits, requests: { cpu: '500m' } })))
})

test('quantities are compared by their amount, and labels by their text', async (t) => {
  const limited = (cpu: string) => template({}, { containers: [{ name: 'main', resources: { limits: { cpu } } }] })
  t.ok(isSameTemplate(limited('500m'), limited('0.5')))
  t.notOk(isSameTemplate(limited('500m'), limited('0.6')))
  const counted = (cpu: string | number) =>
    template({}, { containers: [{ name: 'main', resources: { limits: { cpu } } }] })
  t.ok(isSameTemplate(counted(1), counted('1')))
  t.notOk(isSameTemplate(counted('one'), counted('two')), 'what is not a quantity is compared as it is')
  const selecting = (limits: string) => template({}, { nodeSelector: { limits } })
  t.notOk(isSameTemplate(selecting('500m'), selecting('0.5')))
})

test('labels and annotations are part of a template, and their order is not', async (t) => {
  const { spec } = template({})
  const labelled = (labels: { readonly [key: string]: string }) => ({ metadata: { labels }, spec })
  t.ok(isSameTemplate(labelled({ a: '1', b: '2' }), labelled({ b: '2', a: '1' })))
  t.notOk(isSameTemplate(labelled({ a: '1' }), labelled({ a: '2' })))
  t.notOk(isSameTemplate({ spec }, { metadata: { annotations: { a: '1' } }, spec }))
})

test('the label of the hash makes no other template', async (t) => {
  const labelled = template({})
  const labels = { app: 'web', 'pod-template-hash': 'x' }
  t.ok(isSameTemplate(labelled, { ...labelled, metadata: { labels } }))
  t.equal(templateHash(labelled, 1), templateHash({ ...labelled, metadata: { labels } }, 1))
  t.ok(isSameTemplate({ spec: labelled.spec }, { metadata: { labels: {} }, spec: labelled.spec }))
  t.match(templateHash(labelled, undefined), /^[bcdfghjklmnpqrstvwxz2456789]{1,10}$/)
  t.equal(templateHash(labelled, undefined), '55c8cd8d55', 'it stays over versions of the program')
  t.not(templateHash(labelled, undefined), templateHash(labelled, 0), 'a collision makes another name')
  t.not(templateHash(labelled, 1), templateHash(labelled, 2))
})

test('an empty map or list is an absent one', async (t) => {
  t.ok(isSameTemplate(template({}), template({}, { nodeSelector: {}, tolerations: [], initContainers: [] })))
  const container = { name: 'main', image: 'nginx:1.27', resources: {}, env: [] }
  t.ok(isSameTemplate(template({}), template({}, { containers: [container] })))
  t.notOk(isSameTemplate(template({}), template({}, { nodeSelector: { disk: 'ssd' } })))
})
