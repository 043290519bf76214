import { test } from 'tap'
import { problemText } from '../../api/problem.ts'
import { withPodDefaults } from '../../api/validation/pod-defaults.ts'
import { causes, create, createdPod, createPod, fields, pod } from '../testing/admitting.ts'
import { ephemeralChangeProblems, podChangeProblems } from './kinds/pod-change.ts'

test('all errors of a pod are reported at once, each with its field', async (t) => {
  const wrong = pod(
    {
      containers: [
        {
          name: 'Web',
          ports: [{ containerPort: 0 }, { containerPort: 80, hostPort: 70000, protocol: 'ICMP', name: 'a' }],
          env: [{ name: 'A=B' }],
          imagePullPolicy: 'Sometimes',
          resources: { requests: { cpu: '2', memory: '-1' }, limits: { cpu: '1', 'hugepages-2Mi': '1' } },
        },
        { name: 'twin', image: ' nginx', ports: [{ containerPort: 1, hostPort: 5 }] },
        { name: 'twin', image: 'nginx', ports: [{ containerPort: 2, hostPort: 5 }] },
      ],
      restartPolicy: 'Maybe',
      terminationGracePeriodSeconds: -1,
      nodeSelector: { 'bad key': 'x' },
      tolerations: [
        { operator: 'Equal', value: 'x' },
        { key: 'a', operator: 'Exists', value: 'x' },
        { key: 'a', operator: 'Like', effect: 'Never', tolerationSeconds: 1 },
      ],
    },
    {},
  )
  t.same(
    fields(() => create('pods', wrong)),
    [
      'spec.containers[0].name',
      'spec.containers[0].image',
      'spec.containers[0].imagePullPolicy',
      'spec.containers[0].ports[0].containerPort',
      'spec.containers[0].ports[1].hostPort',
      'spec.containers[0].ports[1].protocol',
      'spec.containers[0].env[0].name',
      'spec.containers[0].resources.limits[hugepages-2Mi]',
      'spec.containers[0].resources.requests[hugepages-2Mi]',
      'spec.containers[0].resources.requests[memory]',
      'spec.containers[0].resources.requests',
      'spec.containers[1].image',
      'spec.containers[2].name',
      'spec.containers[2].ports[0].hostPort',
      'spec.restartPolicy',
      'spec.nodeSelector',
      'spec.tolerations[0].operator',
      'spec.tolerations[1].operator',
      'spec.tolerations[2].effect',
      'spec.tolerations[2].operator',
      'spec.tolerations[2].effect',
    ],
  )
  t.same(
    causes(() => create('pods', pod({ containers: [] }))),
    ['spec.containers: Required value'],
  )
  t.same(
    causes(() => create('pods', pod({}, { image: '' }))),
    ['spec.containers[0].image: Required value'],
  )
  t.same(
    causes(() => create('pods', pod({}, { resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } }))),
    ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
  )
})

test('unsupported fields are rejected by name', async (t) => {
  const asked = pod(
    {
      volumes: [{ name: 'v', iscsi: {} }],
      hostUsers: false,
    },
    {
      volumeMounts: [{ name: 'v', mountPath: '/v', recursiveReadOnly: 'Enabled' }],
      securityContext: { procMount: 'Unmasked' },
    },
  )
  t.same(
    fields(() => create('pods', asked)),
    [
      'spec.volumes[0].iscsi',
      'spec.hostUsers',
      'spec.containers[0].volumeMounts[0].recursiveReadOnly',
      'spec.containers[0].securityContext.procMount',
    ],
  )
  t.same(
    causes(() => create('pods', pod({ hostUsers: false }))),
    ['spec.hostUsers: Forbidden: is not supported by this version of Bramble'],
  )
})

test('an unknown volume type is rejected, not treated as an emptyDir', async (t) => {
  const sources = ['flexVolume', 'rbd', 'cephfs', 'gitRepo', 'azureFile', 'storageos']
  for (const source of sources) {
    for (const value of [{}, { driver: 'a', secretRef: { name: 'hidden' } }]) {
      const asked = pod({ volumes: [{ name: 'v', [source]: value }] })
      t.same(
        causes(() => create('pods', asked)),
        [`spec.volumes[0].${source}: Forbidden: is not supported by this version of Bramble`],
      )
    }
  }
})

test('a volume of a driver is accepted, with its name checked; the node that has no such driver refuses it', async (t) => {
  const csi = { driver: 'ephemeral.csi.example.com', fsType: 'ext4', volumeAttributes: { size: '1Gi' } }
  const asked = pod({ volumes: [{ name: 'v', csi }] })
  t.match(create('pods', asked), { spec: { volumes: [{ name: 'v', csi }] } })
  const wrong = (more: object) =>
    causes(() => create('pods', pod({ volumes: [{ name: 'v', csi: { ...csi, ...more } }] })))
  t.same(wrong({ driver: '' }).slice(0, 1), ['spec.volumes[0].csi.driver: Required value'])
  t.same(wrong({ driver: 'x'.repeat(64) }), ['spec.volumes[0].csi.driver: Too long: may not be more than 63 bytes'])
  t.match(wrong({ driver: 'a_b' }), [/^spec\.volumes\[0\]\.csi\.driver: Invalid value: "a_b"/])
  t.same(wrong({ nodePublishSecretRef: {} }), ['spec.volumes[0].csi.nodePublishSecretRef.name: Required value'])
  t.match(wrong({ nodePublishSecretRef: { name: 'A' } }), [/^spec\.volumes\[0\]\.csi\.name: Invalid value: "A"/])
})

test('a termination message is written to a file inside the container', async (t) => {
  const path = (terminationMessagePath: string) => causes(() => create('pods', pod({}, { terminationMessagePath })))
  for (const wrong of ['../../etc/passwd', '/dev/../../x', '/', '//', '/./', '/a:ro']) {
    t.match(path(wrong), [/^spec\.containers\[0\]\.terminationMessagePath: Invalid value/], wrong)
  }
})

test('a pod has at most 250 containers, init containers and those that are added to it included', async (t) => {
  const many = (kind: string, count: number) =>
    Array.from({ length: count }, (_, at) => ({ name: `${kind}-${at}`, image: 'app:1' }))
  const most = pod({ containers: many('c', 150), initContainers: many('i', 100) })
  const more = pod({ containers: many('c', 150), initContainers: many('i', 101) })
  const tooMany = 'Too many: 251: must have at most 250 containers and init containers'
  const stored = createPod(most)
  t.same(
    causes(() => create('pods', more)),
    [`spec.containers: ${tooMany}`],
  )
  const template = (of: typeof most) => ({
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata: { name: 'web', namespace: 'default' },
    template: { spec: of.spec },
  })
  create('podtemplates', template(most))
  t.same(
    causes(() => create('podtemplates', template(more))),
    [`template.spec.containers: ${tooMany}`],
  )
  const added = withPodDefaults({ ...stored.spec, ephemeralContainers: many('e', 1) })
  t.same(ephemeralChangeProblems(stored, { ...stored, spec: added }).map(problemText), [
    `spec.ephemeralContainers: ${tooMany}`,
  ])
  const { containers } = more.spec
  const before = { ...stored, spec: { ...stored.spec, containers: [...containers, ...many('d', 200)] } }
  t.same(podChangeProblems(before, before), [], 'one that an earlier version accepted is changed as any other')
})

test('supported fields and empty values are accepted', async (t) => {
  createdPod(
    {
      volumes: [],
      securityContext: {},
      affinity: {},
      hostPID: false,
      imagePullSecrets: [],
      serviceAccountName: 'default',
      os: { name: 'linux' },
      priority: 0,
      nodeName: 'pi-01',
      enableServiceLinks: true,
    },
    {
      volumeMounts: [],
      securityContext: {},
      lifecycle: {},
      tty: true,
      stdin: true,
      command: ['a'],
      args: ['b'],
      workingDir: '/',
      resources: { limits: { 'ephemeral-storage': '2Gi' }, requests: { 'ephemeral-storage': '1Gi' } },
      ports: [{ containerPort: 80, hostPort: 8080, hostIP: '127.0.0.1' }],
    },
  )
  t.pass('no refusal')
})

test('init containers are checked as containers are; only sidecars may be probed', async (t) => {
  const probe = { exec: { command: ['true'] } }
  const initContainers = [
    { name: 'main', image: 'x' },
    { name: 'i', image: '', restartPolicy: 'Never' },
    { name: 'j', image: 'x', lifecycle: { preStop: probe } },
    { name: 'j', image: 'x', restartPolicy: 'Always' },
  ]
  const asked = pod({ initContainers }, { restartPolicy: 'Always' })
  const expected = [
    'spec.containers[0].restartPolicy',
    'spec.initContainers[3].name',
    'spec.initContainers[1].image',
    'spec.initContainers[1].restartPolicy',
    'spec.initContainers[2].lifecycle',
  ]
  const invalid = fields(() => create('pods', asked))
  t.same(
    expected.filter((field) => !invalid.includes(field)),
    [],
  )
})

test('probes and hooks have Kubernetes’ defaults and limits', async (t) => {
  const full = createdPod({}, { readinessProbe: { httpGet: { port: 'web' } } })
  t.same(full.spec.containers[0]?.readinessProbe, {
    httpGet: { port: 'web', path: '/', scheme: 'HTTP' },
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  })
  const wrong = pod(
    { terminationGracePeriodSeconds: 10 },
    {
      livenessProbe: { exec: { command: ['true'] }, tcpSocket: { port: 0 }, successThreshold: 2 },
      readinessProbe: { periodSeconds: -1, terminationGracePeriodSeconds: 5 },
      startupProbe: { httpGet: { port: 80, scheme: 'FTP', httpHeaders: [{ name: 'a b', value: '' }] } },
      lifecycle: { preStop: { sleep: { seconds: 11 } }, postStart: { exec: {} } },
    },
  )
  const invalid = fields(() => create('pods', wrong)).map((field) => field.replace('spec.containers[0].', ''))
  t.same(invalid, [
    'livenessProbe.tcpSocket',
    'livenessProbe.tcpSocket.port',
    'livenessProbe.successThreshold',
    'readinessProbe',
    'readinessProbe.periodSeconds',
    'readinessProbe.terminationGracePeriodSeconds',
    'startupProbe.httpGet.scheme',
    'startupProbe.httpGet.httpHeaders[0].name',
    'lifecycle.postStart.exec.command',
    'lifecycle.preStop.sleep.seconds',
  ])
})

test('a device is requested in whole numbers, and needs a limit', async (t) => {
  const asks = (resources: object) => causes(() => create('pods', pod({}, { resources })))
  createdPod({}, { resources: { limits: { 'bramble.dev/gpiochip0': 1 } } })
  t.match(asks({ limits: { 'bramble.dev/gpiochip0': '500m' } }), [
    /limits\[bramble\.dev\/gpiochip0\]: .*must be an integer/,
  ])
  t.match(asks({ requests: { 'bramble.dev/gpiochip0': 1 } }), [/resources\.limits: Required value: Limit must be set/])
})

test('huge pages are refused, with what to do instead', async (t) => {
  t.match(
    causes(() => create('pods', pod({}, { resources: { limits: { 'hugepages-2Mi': '4Mi', memory: '1Mi' } } }))),
    [/limits\[hugepages-2Mi\]: Forbidden: .*remove the request/, /requests\[hugepages-2Mi\]/],
  )
})
