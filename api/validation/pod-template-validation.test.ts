import { test } from 'tap'
import { decode } from '../decode.ts'
import { type PodSpec, type PodTemplateSpec, PodTemplateSpecSchema } from '../pod.ts'
import { problemText } from '../problem.ts'
import { withTemplateDefaults } from './pod-defaults.ts'
import { podTemplateProblems } from './pod-validation.ts'

const template = (spec: Partial<PodSpec> = {}, metadata: PodTemplateSpec['metadata'] = {}): PodTemplateSpec =>
  withTemplateDefaults({ metadata, spec: { containers: [{ name: 'web', image: 'nginx:1.27' }], ...spec } })
const problemsOf = (one: PodTemplateSpec) => podTemplateProblems('spec.template', one).map(problemText)

test('a pod template needs no name and gets no tolerations of its own', async (t) => {
  t.same(problemsOf(template()), [])
  t.equal(template().spec.tolerations, undefined)
  t.equal(template().spec.restartPolicy, 'Always')
})

test('the problems of a pod template name their place inside the object around it', async (t) => {
  const found = problemsOf(
    template(
      {
        containers: [
          {
            name: 'Web',
            image: '',
            resources: { limits: { memory: '-1' } },
            volumeMounts: [{ name: 'x', mountPath: '/x' }],
          },
        ],
        initContainers: [{ name: 'init', image: 'i:1', env: [{ name: '' }] }],
        volumes: [{ name: 'v', hostPath: { path: 'a' } }],
        hostname: '_',
        schedulerName: '_',
        activeDeadlineSeconds: 0,
        securityContext: { runAsUser: -1 },
        topologySpreadConstraints: [{ maxSkew: 0, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
        tolerations: [{ operator: 'Like', key: 'a' }],
        runtimeClassName: 'Not_One',
        ephemeralContainers: [{ name: 'debug', image: 'busybox:1' }],
      },
      { labels: { 'a b': 'c' }, annotations: { 'a b': 'c' } },
    ),
  )
  const fields = found.map((text) => text.slice(0, text.indexOf(':')))
  const outside = fields.filter((field) => !field.startsWith('spec.template.'))
  t.same(outside, [])
  for (const field of [
    'spec.template.metadata.labels',
    'spec.template.metadata.annotations',
    'spec.template.spec.containers[0].name',
    'spec.template.spec.containers[0].image',
    'spec.template.spec.containers[0].resources.limits[memory]',
    'spec.template.spec.containers[0].volumeMounts[0].name',
    'spec.template.spec.initContainers[0].env[0].name',
    'spec.template.spec.volumes[0].hostPath.path',
    'spec.template.spec.hostname',
    'spec.template.spec.schedulerName',
    'spec.template.spec.activeDeadlineSeconds',
    'spec.template.spec.securityContext.runAsUser',
    'spec.template.spec.topologySpreadConstraints[0].maxSkew',
    'spec.template.spec.tolerations[0].operator',
    'spec.template.spec.runtimeClassName',
    'spec.template.spec.ephemeralContainers',
  ]) {
    t.ok(fields.includes(field), field)
  }
  t.ok(found.includes('spec.template.spec.containers[0].image: Required value'))
})

test('a template is decoded by the schema of a pod', async (t) => {
  const decoded = decode(PodTemplateSpecSchema, { spec: { containers: [{ name: 'a', image: 'a:1' }], unknown: 1 } })
  t.match(decoded, { ok: true, unknownFields: ['spec.unknown'] })
})

test('host port 0 does not count, and the host ports of one init container differ', async (t) => {
  const found = (spec: Partial<PodSpec>) => problemsOf(template(spec))
  const ports = (...numbers: readonly number[]) => numbers.map((hostPort) => ({ containerPort: 80, hostPort }))
  const main = { name: 'main', image: 'busybox', ports: ports(5) }
  t.same(found({ containers: [{ ...main, ports: ports(0, 0) }] }), [])
  t.same(found({ containers: [{ ...main, ports: [{ containerPort: 0 }] }] }), [
    'spec.template.spec.containers[0].ports[0].containerPort: Required value',
  ])
  const initContainers = [
    { ...main, name: 'second' },
    { ...main, name: 'first', ports: ports(5, 5) },
  ]
  t.same(found({ containers: [main], initContainers }), [
    'spec.template.spec.initContainers[1].ports[1].hostPort: Duplicate value: "TCP//5"',
  ])
  t.match(found({ activeDeadlineSeconds: 2 ** 31 }), [/must be between 1 and 2147483647, inclusive$/])
})
