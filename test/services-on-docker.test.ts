/** Endpoints of Services, their proxy, and a webhook behind a Service, on real parts: kubectl, controller, agent and Docker. */
import { dirname } from 'node:path'
import { test } from 'tap'
import { openAuthority } from '../certs/authority.ts'
import { issueServer } from '../certs/issue.ts'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const labels = { app: 'web' }
/** It answers with its name, and is ready while it has the file `ready`. */
const script = 'mkdir -p /www && hostname > /www/index.html && touch /www/ready && exec httpd -f -p 8080 -h /www'
const web = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'main',
        image,
        command: ['sh', '-c', script],
        ports: [{ name: 'http', containerPort: 8080 }],
        readinessProbe: { httpGet: { path: '/ready', port: 'http' }, periodSeconds: 1, timeoutSeconds: 10 },
      },
    ],
  },
})

test('a Service has the endpoints of its pods, and its proxy leads to them', async (t) => {
  const { controller, startReady } = await joinedFleet(t)
  await startReady()
  const { kubectl, kubectlWith, tryKubectl } = controller
  const base = '/api/v1/namespaces/default/services'
  const refusal = async (path: string) => (await tryKubectl('get', '--raw', `${base}/${path}`)).stderr
  await kubectl('create', 'service', 'clusterip', 'web', '--tcp=80:http')
  await eventually('the Service has no endpoints', async () =>
    /web-\w{5} +IPv4 +<unset> +<unset>/.test(await kubectl('get', 'endpointslices')),
  )
  t.match(await refusal('web:80/proxy/'), 'no endpoints available for service "web"')
  for (const name of ['one', 'two']) await kubectlWith(JSON.stringify(web(name)), 'create', '-f', '-')
  await kubectl('wait', '--for=condition=Ready', 'pod/one', 'pod/two', '--timeout=80s')
  const ip = (await kubectl('get', 'pod', 'one', '-o', 'jsonpath={.status.podIP}')).trim()
  const other = (await kubectl('get', 'pod', 'two', '-o', 'jsonpath={.status.podIP}')).trim()
  const ready = async () =>
    (await kubectl('get', 'endpoints', 'web', '-o', 'jsonpath={.subsets[*].addresses[*].ip}')).split(' ').sort()

  await eventually('both pods are endpoints', async () => (await ready()).length === 2)
  t.same(await ready(), [ip, other].sort())
  t.match(await kubectl('get', 'endpoints', 'web'), /NAME +ENDPOINTS +AGE\nweb +\S+:8080,\S+:8080 +\S+\n/)
  t.match(await kubectl('get', 'endpointslices'), /web-\w{5} +IPv4 +8080 +\S+,\S+ +\S+\n/)
  t.match(
    await kubectl('describe', 'service', 'web'),
    new RegExp(`Endpoints: +(${ip}:8080,${other}|${other}:8080,${ip}):8080\n`),
  )
  t.match(await kubectl('describe', 'endpointslice'), /Serving: +true|Ready: +true/)

  await t.test('the proxy of the Service reaches one of its pods', async (t) => {
    const answers = new Set<string>()
    await eventually('both pods have answered', async () => {
      answers.add((await kubectl('get', '--raw', `${base}/web:80-http/proxy/index.html`)).trim())
      return answers.size === 2
    })
    t.same([...answers].sort(), ['one', 'two'])
    t.match(await kubectl('get', '--raw', `${base}/http:web:80/proxy/`), /one|two/)
    t.match(await refusal('web:81/proxy/'), 'no service port 81 found for service "web"')
    t.match(await refusal('web:none/proxy/'), 'no endpoints available for service "web:none"')
    t.match(await refusal('none:80/proxy/'), 'services "none" not found')
    t.match(await refusal('ftp:web:80/proxy/'), 'invalid service request "ftp:web:80"')
    t.match(await refusal('kubernetes:https/proxy/'), /no endpoints available|not found/, 'its address is not a pod')
  })

  await t.test('a pod that is not ready, and one that is deleted, are no longer endpoints', async (t) => {
    await kubectl('exec', 'one', '--', 'rm', '/www/ready')
    await eventually('one is not ready', async () => (await ready()).join() === other)
    const path = 'jsonpath={.subsets[*].notReadyAddresses[*].ip}'
    t.equal(await kubectl('get', 'endpoints', 'web', '-o', path), ip)
    await kubectl('delete', 'pod', 'two', '--timeout=80s')
    await eventually('two is gone', async () => (await ready()).join() === '')
    await kubectl('delete', 'service', 'web')
    await eventually('its endpoints go with the Service', async () => {
      const left = await kubectl('get', 'endpoints,endpointslices', '-o', 'name')
      return !left.includes('/web')
    })
  })
})

/** It refuses each object, with the name of the object. */
const server = `
const { cert, key } = JSON.parse(process.env.IDENTITY)
require('node:https').createServer({ cert, key }, (request, answer) => {
  let text = ''
  request.on('data', (data) => { text += data })
  request.on('end', () => {
    const { request: { uid, name } } = JSON.parse(text)
    const response = { uid, allowed: false, status: { message: request.url + ' refuses ' + name } }
    answer.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response }))
  })
}).listen(8443)
`
/** Node.js of this machine, with its libraries: no image of it can be pulled here. */
const folders = [...new Set(['/usr', '/lib', '/lib64', dirname(process.execPath)])]

test('a webhook that runs as a pod is called through its Service', async (t) => {
  const { controller, startReady } = await joinedFleet(t)
  await startReady()
  const { kubectl, kubectlWith, tryKubectl } = controller
  const nowMs = Date.now()
  const authority = await openAuthority(testFolder(t), nowMs)
  const { certificate: cert, key } = issueServer(authority, { names: ['webhook.hooks.svc'], nowMs })
  const caBundle = Buffer.from(authority.certificate).toString('base64')
  const apply = (object: object) => kubectlWith(JSON.stringify(object), 'apply', '-f', '-')
  const configure = (service: object) =>
    apply({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'hooks' },
      webhooks: [
        {
          name: 'hooks.example.com',
          clientConfig: { service: { namespace: 'hooks', name: 'webhook', path: '/validate', ...service }, caBundle },
          rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'default' } },
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
        },
      ],
    })
  const refusal = async () => (await tryKubectl('create', 'configmap', 'one')).stderr
  const failed = 'failed calling webhook "hooks.example.com": failed to call webhook: '
  const post = `Post "https://webhook.hooks.svc:443/validate?timeout=10s": `

  await kubectl('create', 'namespace', 'hooks')
  await configure({})
  t.match(await refusal(), `${failed}${post}service "webhook" not found`)
  await kubectl('create', 'service', 'clusterip', 'webhook', '-n', 'hooks', '--tcp=443:8443')
  await eventually('the Service has no endpoints', async () =>
    (await refusal()).includes(`${failed}${post}no endpoints available for service "webhook"`),
  )
  await apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'webhook', namespace: 'hooks', labels: { app: 'webhook' } },
    spec: {
      terminationGracePeriodSeconds: 0,
      volumes: folders.map((path, index) => ({ name: `v${index}`, hostPath: { path } })),
      containers: [
        {
          name: 'main',
          image,
          command: [process.execPath, '-e', server],
          env: [{ name: 'IDENTITY', value: JSON.stringify({ cert, key }) }],
          volumeMounts: folders.map((mountPath, index) => ({ name: `v${index}`, mountPath, readOnly: true })),
          readinessProbe: { tcpSocket: { port: 8443 }, periodSeconds: 1, timeoutSeconds: 10 },
        },
      ],
    },
  })
  await kubectl('wait', '-n', 'hooks', '--for=condition=Ready', 'pod/webhook', '--timeout=80s')
  await eventually('the webhook answers', async () =>
    (await refusal()).includes(
      'admission webhook "hooks.example.com" denied the request: /validate?timeout=10s refuses one',
    ),
  )
  for (let times = 0; times < 40; times++) t.match(await refusal(), 'denied the request', 'sessions are given back')
  await configure({ port: 444 })
  t.match(await refusal(), 'no service port 444 found for service "webhook"')
  await kubectl('create', 'service', 'clusterip', 'other', '-n', 'hooks', '--tcp=443:8443')
  await kubectl('set', 'selector', 'service', 'other', 'app=webhook', '-n', 'hooks')
  await configure({ name: 'other' })
  await eventually('the certificate is of another Service', async () =>
    (await refusal()).includes("Hostname/IP does not match certificate's altnames"),
  )
  await configure({})
  await kubectl('delete', 'pod', 'webhook', '-n', 'hooks', '--timeout=80s')
  await eventually('there are no endpoints again', async () => (await refusal()).includes('no endpoints available'))
  t.same((await tryKubectl('create', 'configmap', 'one', '-n', 'hooks')).code, 0, 'another namespace')
})
