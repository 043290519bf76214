/**
 * Inputs that public reports and Kubernetes' own tests depend on, with the answers of kube-apiserver 1.32. None needs a controller or a node,
 * so a kube-apiserver alone answers them.
 */
import { type ApiInput, absent, type SentInput } from './api-input.ts'

const yaml = 'application/yaml'
const applied = 'application/apply-patch+yaml'
const maps = '/api/v1/namespaces/NS/configmaps'
const deployments = '/apis/apps/v1/namespaces/NS/deployments'

const map = (name: string, more: object = {}) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, ...more })
const made = (name: string, more: object = {}): SentInput => ({ method: 'POST', path: maps, body: map(name, more) })
const pods = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i:1' }] } }
const selector = { matchLabels: { app: 'a' } }
const template = (spec: object) => ({ ...pods, spec: { ...pods.spec, ...spec } })
const post = (path: string, body: object): SentInput => ({ method: 'POST', path, body })
const workload = (kind: string, name: string, spec: object) => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: { name },
  spec,
})
const deployment = (name: string, spec: object) =>
  post(deployments, workload('Deployment', name, { replicas: 0, selector, template: template(spec) }))
const yamlDeployment = (name: string, volumes: string) => `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}}
spec:
  replicas: 0
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      automountServiceAccountToken: yes
      containers: [{name: c, image: "i:1"}]
      volumes: [{name: v, secret: {secretName: s, defaultMode: ${volumes}}}]
`
const causes = (field: string, reason: string) => ({
  reason: 'Invalid',
  'details.causes.0.field': field,
  'details.causes.0.reason': reason,
})
const noNulls = 'fields without a value are left out'
const long = 'x'.repeat(1024 * 1024 + 1)
const noRequest = Buffer.from('-----BEGIN CERTIFICATE REQUEST-----\nMA==\n-----END CERTIFICATE REQUEST-----\n')

const yamlInputs: readonly ApiInput[] = [
  {
    name: 'a mode of four digits in YAML is octal',
    sent: { method: 'POST', path: deployments, type: yaml, body: yamlDeployment('octal', '0440') },
    expected: { code: 201, fields: { 'spec.template.spec.volumes.0.secret.defaultMode': 288 } },
  },
  {
    name: 'a mode of four digits in an applied YAML is octal',
    sent: {
      method: 'PATCH',
      path: `${deployments}/applied?fieldManager=m`,
      type: applied,
      body: yamlDeployment('applied', '0400'),
    },
    expected: { code: 201, fields: { 'spec.template.spec.volumes.0.secret.defaultMode': 256 } },
  },
  {
    name: 'yes in YAML is a boolean',
    sent: { method: 'POST', path: deployments, type: yaml, body: yamlDeployment('boolean', '0440') },
    expected: { code: 201, fields: { 'spec.template.spec.automountServiceAccountToken': true } },
  },
  {
    name: 'on in YAML is not a text',
    sent: {
      method: 'POST',
      path: maps,
      type: yaml,
      body: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: text}\ndata: {a: on}\n',
    },
    expected: { code: 400, fields: { reason: 'BadRequest' } },
    differs: 'a value of another type is 422 with its field',
  },
  {
    name: 'the first of several YAML documents is taken',
    sent: {
      method: 'POST',
      path: maps,
      type: yaml,
      body: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\n',
    },
    expected: { code: 201, fields: { 'metadata.name': 'first' } },
  },
  {
    name: 'a merge key of YAML merges',
    sent: {
      method: 'POST',
      path: maps,
      type: yaml,
      body: 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: merged\n  labels: &l {a: b}\n  annotations: {<<: *l, c: d}\n',
    },
    expected: { code: 201, fields: { 'metadata.annotations': { a: 'b', c: 'd' } } },
  },
]

const refusals: readonly ApiInput[] = [
  {
    name: 'annotations of more than 256 KiB are too long',
    sent: made('annotated', { metadata: { name: 'annotated', annotations: { a: 'x'.repeat(256 * 1024) } } }),
    expected: { code: 422, fields: causes('metadata.annotations', 'FieldValueTooLong') },
  },
  {
    name: 'a ConfigMap of more than 1 MiB is too long',
    sent: made('long', { data: { a: long } }),
    expected: { code: 422, fields: { reason: 'Invalid', 'details.causes.0.reason': 'FieldValueTooLong' } },
  },
  {
    name: 'a Secret of more than 1 MiB is too long',
    sent: post('/api/v1/namespaces/NS/secrets', { ...map('long'), kind: 'Secret', stringData: { a: long } }),
    expected: { code: 422, fields: causes('data', 'FieldValueTooLong') },
  },
  {
    name: 'fieldRef has the version v1',
    sent: deployment('field', {
      containers: [
        {
          name: 'c',
          image: 'i:1',
          env: [{ name: 'N', valueFrom: { fieldRef: { apiVersion: 'v2', fieldPath: 'metadata.name' } } }],
        },
      ],
    }),
    expected: {
      code: 422,
      fields: causes('spec.template.spec.containers[0].env[0].valueFrom.fieldRef.fieldPath', 'FieldValueInvalid'),
    },
  },
  {
    name: 'a CertificateSigningRequest holds a request',
    sent: post('/apis/certificates.k8s.io/v1/certificatesigningrequests', {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { generateName: 'compare-' },
      spec: { request: noRequest.toString('base64'), signerName: 'example.com/a', usages: ['client auth'] },
    }),
    expected: { code: 422, fields: causes('spec.request', 'FieldValueInvalid') },
  },
  {
    name: 'a timeout that is not a duration',
    sent: { method: 'GET', path: `${maps}?timeout=invalid` },
    expected: { code: 400, fields: { reason: 'BadRequest' } },
  },
  {
    name: 'a label selector that cannot be parsed',
    sent: { method: 'GET', path: `${maps}?labelSelector=a%3D%3Db%3D%3Dc` },
    expected: { code: 400, fields: { reason: 'BadRequest' } },
  },
  {
    name: 'a field selector of a field that cannot be selected',
    sent: { method: 'GET', path: `${maps}?fieldSelector=data.a%3D1` },
    expected: { code: 400, fields: { reason: 'BadRequest' } },
  },
  {
    name: 'another kind than that of the path',
    sent: post(maps, { ...map('kind'), kind: 'Secret' }),
    expected: { code: 400, fields: { reason: 'BadRequest' } },
  },
  {
    name: 'another name than that of the path',
    before: [made('named')],
    sent: { method: 'PUT', path: `${maps}/named`, body: map('other') },
    expected: { code: 400, fields: { reason: 'BadRequest' } },
  },
  {
    name: 'a patch of an unknown type',
    before: [made('patched')],
    sent: { method: 'PATCH', path: `${maps}/patched`, body: {} },
    expected: { code: 415, fields: { reason: 'UnsupportedMediaType' } },
  },
  {
    name: 'a body of a type that cannot be read',
    sent: { method: 'POST', path: maps, type: 'text/plain', body: 'a' },
    expected: { code: 415, fields: { reason: 'UnsupportedMediaType' } },
  },
  {
    name: 'an answer of a type that cannot be written',
    sent: { method: 'GET', path: maps, accept: 'text/html' },
    expected: { code: 406 },
  },
  {
    name: 'a field that does not exist, with strict validation',
    sent: { method: 'POST', path: `${maps}?fieldValidation=Strict`, body: map('strict', { none: 1 }) },
    expected: { code: 400, fields: { reason: 'BadRequest' } },
  },
  {
    name: 'a field twice, with strict validation',
    sent: {
      method: 'POST',
      path: `${maps}?fieldValidation=Strict`,
      body: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice"},"data":{"a":"1","a":"2"}}',
    },
    expected: { code: 400, fields: { reason: 'BadRequest' } },
  },
  {
    name: 'an unknown fieldValidation',
    sent: { method: 'POST', path: `${maps}?fieldValidation=Other`, body: map('validated') },
    expected: { code: 422, fields: { reason: 'Invalid', 'details.causes.0.reason': 'FieldValueNotSupported' } },
  },
  {
    name: 'an unknown dryRun',
    sent: { method: 'POST', path: `${maps}?dryRun=Some`, body: map('dry') },
    expected: { code: 422, fields: { reason: 'Invalid', 'details.causes.0.reason': 'FieldValueNotSupported' } },
  },
  {
    name: 'an apply without a field manager',
    sent: { method: 'PATCH', path: `${maps}/unmanaged`, type: applied, body: map('unmanaged') },
    expected: { code: 422, fields: { reason: 'Invalid', 'details.causes.0.reason': 'FieldValueRequired' } },
  },
  {
    name: 'a name that is taken',
    before: [made('taken')],
    sent: made('taken'),
    expected: { code: 409, fields: { reason: 'AlreadyExists' } },
  },
  {
    name: 'an update of an earlier version',
    before: [made('stale')],
    sent: {
      method: 'PUT',
      path: `${maps}/stale`,
      body: map('stale', { metadata: { name: 'stale', resourceVersion: '1' } }),
    },
    expected: { code: 409, fields: { reason: 'Conflict' } },
  },
  {
    name: 'a deletion of an object with another uid',
    before: [made('kept')],
    sent: { method: 'DELETE', path: `${maps}/kept`, body: { preconditions: { uid: 'other' } } },
    expected: { code: 409, fields: { reason: 'Conflict' } },
  },
  {
    name: 'an object that does not exist',
    sent: { method: 'GET', path: `${maps}/none` },
    expected: { code: 404, fields: { reason: 'NotFound', 'details.kind': 'configmaps', 'details.name': 'none' } },
  },
  {
    name: 'a method that a path does not have',
    sent: { method: 'PUT', path: maps, body: map('put') },
    expected: { code: 405, fields: { reason: 'MethodNotAllowed' } },
  },
  {
    name: 'a resource that does not exist',
    sent: { method: 'GET', path: '/api/v1/namespaces/NS/nothings' },
    expected: { code: 404 },
  },
]

const created = (name: string, sent: SentInput, status: unknown, differs?: string): ApiInput => ({
  name,
  sent,
  expected: { code: 201, fields: { status } },
  ...(differs !== undefined && { differs }),
})

const statuses: readonly ApiInput[] = [
  created(
    'the status of a new CronJob',
    post('/apis/batch/v1/namespaces/NS/cronjobs', {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name: 'cron' },
      spec: {
        schedule: '0 0 1 1 *',
        suspend: true,
        jobTemplate: { spec: { template: template({ restartPolicy: 'Never' }) } },
      },
    }),
    {},
  ),
  created(
    'the status of a new Job',
    post('/apis/batch/v1/namespaces/NS/jobs', {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'job' },
      spec: { suspend: true, template: template({ restartPolicy: 'Never' }) },
    }),
    {},
  ),
  created(
    'the status of a new Ingress',
    post('/apis/networking.k8s.io/v1/namespaces/NS/ingresses', {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: { name: 'ingress' },
      spec: { defaultBackend: { service: { name: 's', port: { number: 80 } } } },
    }),
    { loadBalancer: {} },
  ),
  created(
    'the status of a new PodDisruptionBudget',
    post('/apis/policy/v1/namespaces/NS/poddisruptionbudgets', {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'pdb' },
      spec: { minAvailable: 1, selector },
    }),
    { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 },
  ),
  created('the status of a new Deployment', deployment('status', {}), {}),
  created(
    'the status of a new DaemonSet',
    post(
      '/apis/apps/v1/namespaces/NS/daemonsets',
      workload('DaemonSet', 'ds', { selector, template: template({ nodeSelector: { no: 'node' } }) }),
    ),
    { currentNumberScheduled: 0, desiredNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0 },
  ),
  created(
    'the status of a new StatefulSet',
    post(
      '/apis/apps/v1/namespaces/NS/statefulsets',
      workload('StatefulSet', 'sts', { replicas: 0, serviceName: 's', selector, template: pods }),
    ),
    { replicas: 0, availableReplicas: 0 },
  ),
  created(
    'the status of a new ReplicaSet',
    post(
      '/apis/apps/v1/namespaces/NS/replicasets',
      workload('ReplicaSet', 'rs', { replicas: 0, selector, template: pods }),
    ),
    { replicas: 0 },
  ),
  created(
    'the status of a new Service',
    post('/api/v1/namespaces/NS/services', {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 's' },
      spec: { clusterIP: 'None' },
    }),
    { loadBalancer: {} },
  ),
  created(
    'the status of a new ResourceQuota',
    post('/api/v1/namespaces/NS/resourcequotas', {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'q' },
      spec: { hard: { secrets: '99' } },
    }),
    {},
  ),
  created(
    'the status of a new HorizontalPodAutoscaler',
    post('/apis/autoscaling/v2/namespaces/NS/horizontalpodautoscalers', {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: 'hpa' },
      spec: { maxReplicas: 2, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'none' } },
    }),
    { currentMetrics: null, desiredReplicas: 0 },
    noNulls,
  ),
  {
    name: 'the creation time of a pod template is null',
    sent: deployment('template', {}),
    expected: { code: 201, fields: { 'spec.template.metadata.creationTimestamp': null } },
    differs: noNulls,
  },
]

const answers: readonly ApiInput[] = [
  {
    name: 'a negative grace period of pods is accepted',
    sent: deployment('grace', { terminationGracePeriodSeconds: -1 }),
    expected: { code: 201 },
  },
  {
    name: 'a deletion with a negative grace period',
    before: [made('graceful')],
    sent: { method: 'DELETE', path: `${maps}/graceful?gracePeriodSeconds=-1` },
    expected: { code: 200, fields: { status: 'Success' } },
  },
  {
    name: 'a dry run keeps nothing',
    before: [{ ...made('rehearsed'), path: `${maps}?dryRun=All` }],
    sent: { method: 'GET', path: `${maps}/rehearsed` },
    expected: { code: 404 },
  },
  {
    name: 'the Lease of a client',
    before: [
      post('/apis/coordination.k8s.io/v1/namespaces/NS/leases', {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: 'leader' },
        spec: { holderIdentity: 'a', leaseDurationSeconds: 15 },
      }),
    ],
    sent: { method: 'GET', path: '/apis/coordination.k8s.io/v1/namespaces/NS/leases/leader' },
    expected: { code: 200, fields: { 'spec.holderIdentity': 'a', 'spec.leaseTransitions': absent } },
  },
  {
    name: 'stringData of a Secret becomes data',
    sent: post('/api/v1/namespaces/NS/secrets', { ...map('text'), kind: 'Secret', stringData: { a: 'b' } }),
    expected: { code: 201, fields: { 'data.a': 'Yg==', stringData: absent, type: 'Opaque' } },
  },
  {
    name: 'a table',
    sent: { method: 'GET', path: maps, accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    expected: {
      code: 200,
      fields: { kind: 'Table', apiVersion: 'meta.k8s.io/v1', 'columnDefinitions.0.name': 'Name' },
    },
  },
  {
    name: 'metadata only',
    sent: { method: 'GET', path: maps, accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' },
    expected: { code: 200, fields: { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1' } },
  },
  {
    name: 'a watch in protobuf only',
    sent: { method: 'GET', path: `${maps}?watch=1&timeoutSeconds=1`, accept: 'application/vnd.kubernetes.protobuf' },
    expected: { code: 200 },
    differs: 'answers are JSON or YAML',
  },
  {
    name: 'the health of components',
    sent: { method: 'GET', path: '/api/v1/componentstatuses' },
    expected: { code: 200, fields: { kind: 'ComponentStatusList' } },
  },
  {
    name: 'the metrics of health checks',
    sent: { method: 'GET', path: '/metrics/slis', accept: '*/*' },
    expected: { code: 200 },
  },
  ...[
    '/healthz',
    '/livez',
    '/readyz',
    '/healthz/ping',
    '/livez/ping',
    '/livez/log',
    '/readyz/ping',
    '/healthz/etcd',
    '/readyz/etcd',
  ].map(
    (path): ApiInput => ({
      name: `the health at ${path}`,
      sent: { method: 'GET', path, accept: '*/*' },
      expected: { code: 200, fields: { '': 'ok' } },
    }),
  ),
  {
    name: 'a health check that does not exist',
    sent: { method: 'GET', path: '/readyz/nothing', accept: '*/*' },
    expected: { code: 404 },
  },
]

const latin1 = Buffer.from('metadata: {name: latin1}\ndata: {k: "caf\xe9"}\n', 'latin1')
const merge = 'application/merge-patch+json'
const jsonPatch = 'application/json-patch+json'
const onNull = (name: string, object: string, type: string, body: unknown, fields: object): ApiInput => ({
  name,
  before: [made(object, { data: { k: 'v' } })],
  sent: { method: 'PATCH', path: `${maps}/${object}`, type, body },
  expected: { code: 200, fields: { ...fields } },
})
const containerOf = (container: object) => template({ containers: [{ name: 'c', image: 'i:1', ...container }] })
const deploymentOf = (name: string, its: object) =>
  post(deployments, workload('Deployment', name, { replicas: 0, selector, template: its }))
const networkPolicy = { metadata: { name: 'nulls' }, spec: { podSelector: {}, ingress: [null] } }
const role = { metadata: { name: 'nulls' }, rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get', null] }] }

/** A null in a list or a map is the zero of its type. */
const nulls: readonly ApiInput[] = [
  {
    name: 'a label that is null is empty',
    sent: post(maps, { metadata: { name: 'null-label', labels: { a: null } } }),
    expected: { code: 201, fields: { 'metadata.labels.a': '' } },
  },
  {
    name: 'YAML that is not UTF-8 is refused',
    sent: { method: 'POST', path: maps, type: yaml, body: latin1 },
    expected: { code: 400, fields: { reason: 'BadRequest' } },
  },
  {
    name: 'data that is null is empty',
    sent: made('null-data', { data: { k: null } }),
    expected: { code: 201, fields: { 'data.k': '' } },
  },
  {
    name: 'bytes of a Secret that are null are empty',
    sent: post('/api/v1/namespaces/NS/secrets', { metadata: { name: 'null-bytes' }, data: { k: null } }),
    expected: { code: 201, fields: { 'data.k': '' } },
  },
  {
    name: 'a selector of nodes whose value is null selects an empty label',
    sent: deployment('null-selector', { nodeSelector: { a: null } }),
    expected: { code: 201, fields: { 'spec.template.spec.nodeSelector.a': '' } },
  },
  {
    name: 'an argument that is null is empty',
    sent: deploymentOf('null-argument', containerOf({ args: ['a', null] })),
    expected: { code: 201, fields: { 'spec.template.spec.containers.0.args.1': '' } },
  },
  {
    name: 'a container that is null has no name',
    sent: deployment('null-container', { containers: [{ name: 'c', image: 'i:1' }, null] }),
    expected: { code: 422, fields: causes('spec.template.spec.containers[1].name', 'FieldValueRequired') },
  },
  {
    name: 'a variable that is null has no name',
    sent: deploymentOf('null-variable', containerOf({ env: [null] })),
    expected: { code: 422, fields: causes('spec.template.spec.containers[0].env[0].name', 'FieldValueRequired') },
  },
  {
    name: 'a rule of a network policy that is null is empty',
    sent: post('/apis/networking.k8s.io/v1/namespaces/NS/networkpolicies', networkPolicy),
    expected: { code: 201, fields: { 'spec.ingress.0': {} } },
  },
  {
    name: 'a verb that is null is empty',
    sent: post('/apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles', role),
    expected: { code: 201, fields: { 'rules.0.verbs.1': '' } },
  },
  {
    name: 'apiVersion and kind that are null are those of the path',
    sent: post(maps, { apiVersion: null, kind: null, metadata: { name: 'null-kind' } }),
    expected: { code: 201, fields: { kind: 'ConfigMap' } },
  },
  onNull('a merge patch removes by null', 'null-merge', merge, { data: { k: null, l: null } }, { 'data.k': absent }),
  onNull(
    'a JSON patch tests with null that a field is absent',
    'null-test',
    jsonPatch,
    [
      { op: 'test', path: '/data/l', value: null },
      { op: 'add', path: '/data/l', value: 'w' },
    ],
    { 'data.l': 'w' },
  ),
  onNull(
    'a JSON patch sets null, which is empty',
    'null-set',
    jsonPatch,
    [
      { op: 'replace', path: '/data/k', value: null },
      { op: 'add', path: '/data/l' },
    ],
    { 'data.k': '', 'data.l': '' },
  ),
  {
    name: 'a merge patch leaves nulls out of what is in a list',
    before: [deployment('null-in-list', {})],
    sent: {
      method: 'PATCH',
      path: `${deployments}/null-in-list`,
      type: merge,
      body: {
        spec: {
          template: { spec: { containers: [{ name: 'c', image: 'i:1', resources: { limits: { cpu: null } } }] } },
        },
      },
    },
    expected: { code: 200, fields: { 'spec.template.spec.containers.0.resources.limits.cpu': absent } },
  },
]

export const apiInputs: readonly ApiInput[] = [...yamlInputs, ...refusals, ...statuses, ...answers, ...nulls]
