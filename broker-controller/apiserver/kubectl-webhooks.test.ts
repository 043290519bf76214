import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import { issueServer } from '../../certs/issue.ts'
import { systemClock as clock } from '../../daemon/clock.ts'
import { metricsRegistry } from '../../daemon/metrics-registry.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { eventually } from '../../test/support/wait.ts'
import { startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'
import { auditLog } from './audit/audit-log.ts'

type Review = { readonly uid: string; readonly operation: string; readonly [field: string]: unknown }
type Response = { readonly [field: string]: unknown }

const rule = { operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }
const allow = () => ({ allowed: true })

test('kubectl meets admission webhooks', { skip: whyNoKubectl() }, async (t) => {
  const { api, configure, kubectl, audited, registry } = await aFleet(t)

  const ok = async (t: Test, args: readonly string[]) => {
    const { code, stderr } = await kubectl(args)
    t.equal(code, 0, stderr)
  }

  await t.test('a mutating webhook changes what is written, and a validating one sees the result', async (t) => {
    const seen: Review[] = []
    await configure(t, 'Mutating', [{ name: 'b.example.com', hook: addLabel('second') }], { name: 'b' })
    await configure(t, 'Mutating', [{ name: 'a.example.com', hook: addLabel('first') }], { name: 'a' })
    await configure(t, 'Validating', [{ name: 'v.example.com', hook: keeping(seen, allow) }])
    await ok(t, ['create', 'configmap', 'one', '--from-literal=k=v'])
    t.equal((await kubectl(['get', 'cm', 'one', '-o', 'jsonpath={.metadata.labels.order}'])).stdout, 'first.second')
    await ok(t, ['annotate', 'cm', 'one', 'a=b'])
    await ok(t, ['delete', 'cm', 'one', '--dry-run=server'])
    await ok(t, ['delete', 'cm', 'one'])
    t.match(seen, [
      {
        operation: 'CREATE',
        name: 'one',
        namespace: 'default',
        object: { metadata: { labels: { order: 'first.second' } } },
        oldObject: null,
        dryRun: false,
        userInfo: { username: 'kubernetes-admin' },
      },
      { operation: 'UPDATE', object: { metadata: { annotations: { a: 'b' } } }, oldObject: { kind: 'ConfigMap' } },
      { operation: 'DELETE', object: null, oldObject: { data: { k: 'v' } }, dryRun: true },
      { operation: 'DELETE', dryRun: false },
    ])
  })

  await t.test('a denial has the words of Kubernetes, and the first of several is answered', async (t) => {
    const deny = (status?: object) => () => ({ allowed: false, ...(status && { status }), warnings: ['think twice'] })
    await configure(t, 'Validating', [
      { name: 'ok.example.com', hook: allow },
      { name: 'no.example.com', hook: deny({ code: 403, reason: 'Forbidden', message: 'not on Sundays' }) },
      { name: 'never.example.com', hook: deny() },
    ])
    const refused = await kubectl(['create', 'configmap', 'two'])
    t.equal(refused.code, 1)
    t.match(refused.stderr, /admission webhook "no\.example\.com" denied the request: not on Sundays/)
    t.match(await kubectl(['get', 'cm', 'two']), { code: 1, stderr: /NotFound/ })
    t.match(await kubectl(['create', 'configmap', 'two', '--dry-run=server']), { code: 1 })
  })

  await t.test('warnings reach the user, and annotations the audit log', async (t) => {
    const hook = () => ({ allowed: true, warnings: ['deprecated'], auditAnnotations: { owner: 'team-a' } })
    await configure(t, 'Validating', [{ name: 'warn.example.com', hook }])
    t.match((await kubectl(['create', 'configmap', 'three'])).stderr, 'Warning: deprecated')
    t.equal(await audited('warn.example.com/owner'), 'team-a')
  })

  await t.test('a failed call is refused or ignored by its failurePolicy', async (t) => {
    const broken = { name: 'broken.example.com', hook: () => undefined }
    const remove = await configure(t, 'Validating', [broken])
    const refused = await kubectl(['create', 'configmap', 'four'])
    t.match(refused.stderr, /Internal error occurred: failed calling webhook "broken\.example\.com": /)
    t.match(refused.stderr, /failed to call webhook: an error on the server \("broken"\) has prevented the request/)
    await remove()
    await configure(t, 'Validating', [{ ...broken, failurePolicy: 'Ignore' }])
    await ok(t, ['create', 'configmap', 'four'])
    const key = 'failed-open.validating.webhook.admission.k8s.io/round_0_index_0'
    t.equal(await audited(key), 'broken.example.com')
    const open = registry.samplesOf('apiserver_admission_webhook_fail_open_count')
    t.match(open, [{ labels: { name: 'broken.example.com', type: 'validating' }, value: 1 }])
  })

  await t.test('what no server answers, or too late, or with another certificate is a failed call', async (t) => {
    const stderrOf = async (webhook: Webhook) => {
      const remove = await configure(t, 'Validating', [webhook])
      const { stderr } = await kubectl(['create', 'configmap', 'five'])
      await remove()
      return stderr
    }
    const name = 'gone.example.com'
    t.match(
      await stderrOf({ name, clientConfig: { url: 'https://127.0.0.1:1/x' } }),
      /failed to call webhook: Post "https:\/\/127\.0\.0\.1:1\/x\?timeout=10s": dial tcp 127\.0\.0\.1:1: connect: connection refused/,
    )
    t.match(await stderrOf({ name, hook: () => 'hang', timeoutSeconds: 1 }), /timeout=1s": context deadline exceeded/)
    t.match(await stderrOf({ name, hook: () => 'redirect' }), /the server responded with the status code 302/)
    t.match(await stderrOf({ name, hook: () => 'flood' }), /the answer is longer than 3145728 bytes/)
    t.match(await stderrOf({ name, hook: allow, trusts: 'system' }), /Post ".*": .*certificate/)
    t.match(
      await stderrOf({ name, clientConfig: { service: { namespace: 'n', name: 's' } } }),
      /Post "https:\/\/s\.n\.svc:443\/\?timeout=\d+s": service "s" not found/,
    )
    t.match(await stderrOf({ name, hook: () => ({ uid: 'other', allowed: true }) }), /expected response\.uid=/)
  })

  await t.test('a webhook that fails for everything can be removed, and selectors leave namespaces out', async (t) => {
    const all = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }
    const namespaceSelector = {
      matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system'] }],
    }
    const name = 'all.example.com'
    const remove = await configure(t, 'Validating', [{ name, hook: () => undefined, rules: [all], namespaceSelector }])
    await api.store.update('namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'kube-system', labels: { 'kubernetes.io/metadata.name': 'kube-system' } },
    })
    t.match(await kubectl(['create', 'secret', 'generic', 's']), { code: 1 })
    await ok(t, ['create', 'secret', 'generic', 's', '-n', 'kube-system'])
    await remove()
    await ok(t, ['create', 'secret', 'generic', 's'])
  })

  await t.test('a webhook is called once more when a later one changed the object', async (t) => {
    const counts = { a: 0, b: 0 }
    const counting =
      (which: 'a' | 'b', hook: Hook): Hook =>
      (review) => {
        counts[which]++
        return hook(review)
      }
    await configure(t, 'Mutating', [
      { name: 'a.example.com', hook: counting('a', addLabel('a')), reinvocationPolicy: 'IfNeeded' },
      { name: 'b.example.com', hook: counting('b', addLabel('b')) },
    ])
    await ok(t, ['create', 'configmap', 'six'])
    t.same(counts, { a: 2, b: 1 })
    t.equal((await kubectl(['get', 'cm', 'six', '-o', 'jsonpath={.metadata.labels.order}'])).stdout, 'a.b.a')
  })

  await t.test('a patch that does not apply, or makes another object, is an error', async (t) => {
    const patching =
      (...operations: object[]) =>
      () => ({ allowed: true, patchType: 'JSONPatch', patch: base64(operations) })
    const stderrWith = async (hook: Hook) => {
      const remove = await configure(t, 'Mutating', [{ name: 'p.example.com', hook }])
      const { stderr } = await kubectl(['create', 'configmap', 'seven'])
      await remove()
      return stderr
    }
    t.match(
      await stderrWith(patching({ op: 'remove', path: '/nope' })),
      /Internal error occurred: admission webhook "p\.example\.com" returned a patch that does not apply/,
    )
    t.match(await stderrWith(patching({ op: 'replace', path: '/metadata/namespace', value: 'x' })), /namespace/)
    t.match(
      await stderrWith(patching({ op: 'replace', path: '/kind', value: 'Secret' })),
      /cannot be handled as a ConfigMap/,
    )
    t.match(await stderrWith(patching({ op: 'add', path: '/data', value: { 'not ok': 'x' } })), /invalid/i)
    t.match(await kubectl(['get', 'cm', 'seven']), { code: 1 })
  })

  await t.test('connections and actions are judged, too', async (t) => {
    const seen: Review[] = []
    const hook = keeping(seen, () => ({ allowed: false, status: { message: 'no' } }))
    const rules = [{ ...rule, resources: ['pods/exec', 'pods/eviction', 'serviceaccounts/token'] }]
    await configure(t, 'Validating', [{ name: 'do.example.com', hook, rules }])
    await kubectl(['create', 'serviceaccount', 'robot'])
    t.match(
      (await kubectl(['create', 'token', 'robot'])).stderr,
      /admission webhook "do\.example\.com" denied the request: no/,
    )
    t.match(seen, [{ operation: 'CREATE', subResource: 'token', kind: { kind: 'TokenRequest' }, name: 'robot' }])
    await kubectl(['get', '--raw', '/api/v1/namespaces/default/pods/p/exec?command=sh&command=-c&stdin=true'])
    t.match(seen[1], { operation: 'CONNECT', object: { kind: 'PodExecOptions', command: ['sh', '-c'], stdin: true } })
  })

  await t.test('a configuration that cannot work is refused with the field', async (t) => {
    const configuration = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'wrong' },
      webhooks: [
        {
          name: 'x.example.com',
          clientConfig: { url: 'http://x' },
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
        },
      ],
    }
    const refused = await kubectl(['create', '-f', '-'], { input: JSON.stringify(configuration) })
    t.match(
      refused.stderr,
      /webhooks\[0\]\.clientConfig\.url: Invalid value: "http": 'https' is the only allowed URL scheme/,
    )
    const [webhook] = configuration.webhooks
    const conditioned = (expression: string) => ({
      ...configuration,
      webhooks: [{ ...webhook, clientConfig: { url: 'https://x' }, matchConditions: [{ name: 'c', expression }] }],
    })
    const wrong = await kubectl(['create', '-f', '-'], { input: JSON.stringify(conditioned('[] bad expression')) })
    t.match(wrong.stderr, /webhooks\[0\]\.matchConditions\[0\]\.expression: .*compilation failed/)
    const untyped = await kubectl(['create', '-f', '-'], { input: JSON.stringify(conditioned('object.metadata.name')) })
    t.match(untyped.stderr, /must evaluate to bool but got dyn/)
    const right = conditioned("object.metadata.name != 'skip-me'")
    const dry = await kubectl(['create', '--dry-run=server', '-f', '-'], { input: JSON.stringify(right) })
    t.match(dry.stdout, /created \(server dry run\)/)
  })
})

type Hook = (review: Review) => Response | 'hang' | 'redirect' | 'flood' | undefined
type Webhook = {
  readonly name: string
  readonly hook?: Hook
  /** `system`: the certificates of the system, which do not include that of the test. */
  readonly trusts?: 'system'
  readonly [field: string]: unknown
}

/** The hook, with its requests added to `seen`. */
function keeping(seen: Review[], hook: Hook): Hook {
  return (review) => {
    seen.push(review)
    return hook(review)
  }
}

function base64(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64')
}

/** Appends a word to the label `order`. */
function addLabel(word: string): Hook {
  return ({ object }) => {
    const { labels = {} } = (object as { metadata: { labels?: Record<string, string> } } | null)?.metadata ?? {}
    if (object === null) return { allowed: true }
    const value = { ...labels, order: labels['order'] === undefined ? word : `${labels['order']}.${word}` }
    return { allowed: true, patchType: 'JSONPatch', patch: base64([{ op: 'add', path: '/metadata/labels', value }]) }
  }
}

async function aFleet(t: Test) {
  const lines: string[] = []
  const registry = metricsRegistry()
  const audit = auditLog({ file: { append: (line) => void lines.push(line) }, clock, registry })
  const api = await startApi({ log: quietLog(t), over: { audit, registry } })
  t.teardown(api.stop)
  const hooks = new Map<string, Hook>()
  const { certificate, key } = issueServer(api.authority, { names: ['127.0.0.1'], nowMs: Date.now() })
  const server = createServer(
    { cert: certificate, key },
    (incoming, outgoing) => void answer(incoming, outgoing, hooks),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const caBundle = Buffer.from(api.authority.certificate).toString('base64')
  let made = 0
  /** Returns what removes the configuration, at the latest at the end of the test. */
  const configure = async (
    t: Test,
    type: 'Mutating' | 'Validating',
    webhooks: readonly Webhook[],
    { name = `w${++made}` } = {},
  ) => {
    const kind = `${type}WebhookConfiguration`
    const object = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind,
      metadata: { name },
      webhooks: webhooks.map(({ hook, trusts, ...webhook }) => {
        const path = `/${++made}`
        if (hook !== undefined) hooks.set(path, hook)
        const clientConfig = { url: `https://127.0.0.1:${port}${path}`, ...(trusts !== 'system' && { caBundle }) }
        return { clientConfig, rules: [rule], sideEffects: 'None', admissionReviewVersions: ['v1'], ...webhook }
      }),
    }
    const created = await api.kubectl(['create', '-f', '-'], { input: JSON.stringify(object) })
    t.equal(created.code, 0, created.stderr)
    const remove = async () => {
      const removed = await api.kubectl(['delete', kind, name, '--ignore-not-found'])
      t.equal(removed.code, 0, removed.stderr)
    }
    t.teardown(() => api.kubectl(['delete', kind, name, '--ignore-not-found']))
    return remove
  }
  /** This annotation of a request: its line is written after its answer. */
  const audited = (annotation: string) =>
    eventually(`a line with ${annotation}`, (): unknown => {
      const found: unknown[] = lines.map((line) => JSON.parse(line).annotations?.[annotation])
      return found.find((value) => value !== undefined)
    })
  return { api, configure, kubectl: api.kubectl, registry, audited }
}

async function answer(incoming: IncomingMessage, outgoing: ServerResponse, hooks: ReadonlyMap<string, Hook>) {
  let text = ''
  for await (const part of incoming) text += String(part)
  const { request } = JSON.parse(text) as { readonly request: Review }
  const response = hooks.get(new URL(incoming.url ?? '', 'https://x').pathname)?.(request)
  if (response === 'hang') return
  if (response === 'redirect') return void outgoing.writeHead(302, { location: '/elsewhere' }).end()
  if (response === 'flood') return void outgoing.writeHead(200).end('x'.repeat(4 * 1024 * 1024))
  if (response === undefined) return void outgoing.writeHead(500).end('broken')
  const review = {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid: request.uid, ...response },
  }
  outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(review))
}
