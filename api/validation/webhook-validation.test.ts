import { test } from 'tap'
import { type Webhook, withWebhookDefaults } from '../admission/webhook.ts'
import { problemText } from '../problem.ts'
import { webhooksProblems } from './webhook-validation.ts'

const rule = { operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }

function aWebhook(more: Partial<Webhook> = {}): Webhook {
  return {
    name: 'a.example.com',
    clientConfig: { url: 'https://hook.example.com:8443/path' },
    rules: [rule],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    ...more,
  }
}

const problems = (more: Partial<Webhook>, isMutating = true) =>
  webhooksProblems([aWebhook(more)], isMutating).map(problemText)

test('a complete webhook has no problem, alone and with its defaults', async (t) => {
  t.same(problems({}), [])
  t.same(webhooksProblems([withWebhookDefaults(aWebhook(), true)], true), [])
  t.same(webhooksProblems(undefined, true), [])
})

test('defaults are those of Kubernetes', async (t) => {
  const service = { namespace: 'n', name: 's' }
  t.match(withWebhookDefaults(aWebhook({ clientConfig: { service } }), true), {
    clientConfig: { service: { ...service, port: 443 } },
    failurePolicy: 'Fail',
    matchPolicy: 'Equivalent',
    namespaceSelector: {},
    objectSelector: {},
    timeoutSeconds: 10,
    reinvocationPolicy: 'Never',
    rules: [{ ...rule, scope: '*' }],
  })
  t.notOk('reinvocationPolicy' in withWebhookDefaults(aWebhook(), false))
  const given = { failurePolicy: 'Ignore', matchPolicy: 'Exact', timeoutSeconds: 3, reinvocationPolicy: 'IfNeeded' }
  t.match(withWebhookDefaults(aWebhook(given), true), given)
})

test('each wrong field is named', async (t) => {
  const field = 'webhooks[0]'
  const cases: readonly (readonly [Partial<Webhook>, string])[] = [
    [{ name: '' }, `${field}.name: Required value`],
    [
      { name: 'a.b' },
      `${field}.name: Invalid value: "a.b": should be a domain with at least three segments separated by dots`,
    ],
    [
      { sideEffects: 'Some' },
      `${field}.sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"`,
    ],
    [{ admissionReviewVersions: [] }, `${field}.admissionReviewVersions: Required value: must specify one of v1`],
    [
      { admissionReviewVersions: ['v1beta1'] },
      `${field}.admissionReviewVersions: Invalid value: ["v1beta1"]: must include at least one of v1`,
    ],
    [{ admissionReviewVersions: ['v1', 'v1'] }, `${field}.admissionReviewVersions[1]: Duplicate value: "v1"`],
    [{ failurePolicy: 'No' }, `${field}.failurePolicy: Unsupported value: "No": supported values: "Fail", "Ignore"`],
    [{ matchPolicy: 'No' }, `${field}.matchPolicy: Unsupported value: "No": supported values: "Equivalent", "Exact"`],
    [
      { reinvocationPolicy: 'No' },
      `${field}.reinvocationPolicy: Unsupported value: "No": supported values: "IfNeeded", "Never"`,
    ],
    [
      { timeoutSeconds: 0 },
      `${field}.timeoutSeconds: Invalid value: 0: the timeout value must be between 1 and 30 seconds`,
    ],
    [
      { timeoutSeconds: 31 },
      `${field}.timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds`,
    ],
    [{ matchConditions: [{ name: '', expression: 'true' }] }, `${field}.matchConditions[0].name: Required value`],
    [{ matchConditions: [{ name: 'c', expression: ' ' }] }, `${field}.matchConditions[0].expression: Required value`],
    [
      { matchConditions: Array.from({ length: 65 }, (_, index) => ({ name: `c${index}`, expression: 'true' })) },
      `${field}.matchConditions: Too many: 65: must have at most 64 items`,
    ],
    [
      {
        matchConditions: [
          { name: 'c', expression: 'true' },
          { name: 'c', expression: 'false' },
        ],
      },
      `${field}.matchConditions[1].name: Duplicate value: "c"`,
    ],
    [{ clientConfig: {} }, `${field}.clientConfig: Required value: exactly one of url or service is required`],
  ]
  for (const [more, text] of cases) t.same(problems(more), [text])
  const { sideEffects: _, ...without } = aWebhook()
  t.same(webhooksProblems([without], true).map(problemText), [
    `${field}.sideEffects: Required value: must specify one of None, NoneOnDryRun`,
  ])
  for (const timeoutSeconds of [1, 30]) t.same(problems({ timeoutSeconds }), [])
  t.same(problems({ reinvocationPolicy: 'No' }, false), [])
  t.same(webhooksProblems([aWebhook(), aWebhook()], true).map(problemText), [
    'webhooks[1].name: Duplicate value: "a.example.com"',
  ])
})

test('conditions that were accepted before stay, until one of them is changed', async (t) => {
  const conditions = [{ name: 'a b', expression: 'true' }]
  const old = [{ ...aWebhook(), matchConditions: conditions }]
  t.same(webhooksProblems([{ ...aWebhook(), matchConditions: conditions, timeoutSeconds: 5 }], true, old), [])
  const changed = [{ ...aWebhook(), matchConditions: [...conditions, { name: 'c', expression: 'true' }] }]
  t.match(webhooksProblems(changed, true, old).map(problemText), [/matchConditions\[0\]\.name: Invalid value: "a b"/])
})

test('rules must be complete, and a star stands alone', async (t) => {
  const ruleProblems = (more: Partial<typeof rule> & { scope?: string }) =>
    problems({ rules: [{ ...rule, ...more }] }).map((text) => text.replace('webhooks[0].rules[0].', ''))
  for (const name of ['operations', 'apiGroups', 'apiVersions', 'resources'] as const) {
    t.same(ruleProblems({ [name]: [] }), [`${name}: Required value`])
  }
  t.match(ruleProblems({ operations: ['READ'] }), [/operations\[0\]: Unsupported value: "READ"/])
  t.match(ruleProblems({ operations: ['*', 'CREATE'] }), [
    /operations: .*if '\*' is present, must not specify other operations/,
  ])
  t.match(ruleProblems({ apiGroups: ['*', ''] }), [/if '\*' is present, must not specify other API groups/])
  t.match(ruleProblems({ apiVersions: ['*', 'v1'] }), [/must not specify other apiVersions/])
  t.same(ruleProblems({ apiVersions: [''] }), ['apiVersions[0]: Required value'])
  t.same(ruleProblems({ resources: [''] }), ['resources[0]: Required value'])
  t.match(ruleProblems({ resources: ['*/*', 'pods'] }), [/if '\*\/\*' is present, must not specify other resources/])
  t.match(ruleProblems({ scope: 'All' }), [/scope: Unsupported value: "All"/])
  t.same(
    ruleProblems({ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], scope: 'Cluster' }),
    [],
  )
})

test('a URL is https with a host and a path, and nothing else', async (t) => {
  const urlProblems = (url: string) =>
    problems({ clientConfig: { url } }).map((text) => text.replace('webhooks[0].clientConfig.url: ', ''))
  for (const url of ['https://h', 'HTTPS://h:1/', 'https://[::1]:8443/a/b']) t.same(urlProblems(url), [], url)
  t.match(urlProblems('http://h/'), [
    /'https' is the only allowed URL scheme; desired format: https:\/\/host\[\/path\]/,
  ])
  t.match(urlProblems('https:///path'), [/host must be specified/])
  t.match(urlProblems('https://u:p@h/'), [/^Invalid value: "": user information is not permitted in the URL$/])
  t.match(urlProblems('https://h/#f'), [/fragments are not permitted/])
  t.match(urlProblems('https://h/?q=1'), [/query parameters are not permitted/])
  for (const url of ['', 'h', '/path', 'https://h /x', 'https:\\\\h'])
    t.match(urlProblems(url), [/url must be a valid URL/], url)
})

test('a Service needs a name, a namespace, and a port and path that are valid', async (t) => {
  const service = { namespace: 'n', name: 's' }
  const serviceProblems = (more: object) => problems({ clientConfig: { service: { ...service, ...more } } })
  t.same(serviceProblems({ port: 1, path: '/x' }), [])
  t.same(serviceProblems({ port: 65_535 }), [])
  for (const port of [0, 65_536]) t.match(serviceProblems({ port }), [/service.port: .*must be between 1 and 65535/])
  for (const path of ['', '/', '/x/y.z', '/x/']) t.same(serviceProblems({ path }), [], `the path ${path}`)
  t.match(serviceProblems({ path: 'x' }), [/service.path: .*must start with a '\/'/])
  for (const path of ['//', '//x'])
    t.match(serviceProblems({ path }), [/service.path: .*segment\[0\] may not be empty/])
  t.match(serviceProblems({ path: '/x//' }), [/service.path: .*segment\[1\] may not be empty/])
  t.match(serviceProblems({ path: '/x/Y' }), [/service.path: .*segment\[1\]: must be lower case/])
  t.match(serviceProblems({ name: '' }), [/service.name: Required value: service name is required/])
  t.match(serviceProblems({ namespace: '' }), [/service.namespace: Required value: service namespace is required/])
  t.match(problems({ clientConfig: { service, url: 'https://h' } }), [/exactly one of url or service is required/])
})
