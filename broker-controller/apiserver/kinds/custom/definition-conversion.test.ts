import { test } from 'tap'
import { problemText } from '../../../../api/problem.ts'
import type {
  CustomResourceDefinition,
  DefinedConversion,
} from '../../../../api/structural/custom-resource-definition.ts'
import { openAuthority } from '../../../../certs/authority.ts'
import { testFolder } from '../../../../daemon/testing/test-folder.ts'
import { conversionProblems } from './definition-conversion.ts'

type Webhook = NonNullable<DefinedConversion['webhook']>

const definition = (conversion?: DefinedConversion, established = false): CustomResourceDefinition => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'shops.example.com' },
  spec: {
    group: 'example.com',
    names: { plural: 'shops', kind: 'Shop' },
    scope: 'Namespaced',
    versions: [{ name: 'v1', served: true, storage: true }],
    ...(conversion && { conversion }),
  },
  ...(established && { status: { conditions: [{ type: 'Established', status: 'True' }] } }),
})
const service = { namespace: 'default', name: 'convert' }
const byWebhook = (more: Partial<Webhook> = {}): DefinedConversion => ({
  strategy: 'Webhook',
  webhook: { clientConfig: { service }, conversionReviewVersions: ['v1'], ...more },
})
const problems = (conversion?: DefinedConversion, old?: CustomResourceDefinition) =>
  conversionProblems(definition(conversion), old).map(problemText)
const base64 = (text: string) => Buffer.from(text).toString('base64')
const at = 'spec.conversion.webhook'

test('a definition converts by a webhook, or not at all', async (t) => {
  t.same(problems(), [])
  t.same(problems({ strategy: 'None' }), [])
  t.same(problems(byWebhook()), [])
  t.same(problems(byWebhook({ clientConfig: { url: 'https://convert.example.com/' } })), [])
  t.same(problems({ strategy: 'Script' }), [
    'spec.conversion.strategy: Unsupported value: "Script": supported values: "None", "Webhook"',
  ])
  t.same(problems({ ...byWebhook(), strategy: 'None' }), [
    `${at}: Forbidden: should not be set when strategy is not set to Webhook`,
  ])
  const without = [
    `${at}.clientConfig: Required value: required when strategy is set to Webhook`,
    `${at}.conversionReviewVersions: Required value`,
  ]
  t.same(problems({ strategy: 'Webhook' }), without)
  t.same(problems({ strategy: 'Webhook', webhook: {} }), without)
})

test('a webhook has one place, which can be called', async (t) => {
  const wrong = (clientConfig: NonNullable<Webhook['clientConfig']>) => problems(byWebhook({ clientConfig }))
  const one = `${at}.clientConfig: Required value: exactly one of url or service is required`
  t.same(wrong({}), [one])
  t.same(wrong({ url: 'https://convert.example.com/', service }), [one])
  t.match(wrong({ url: 'http://convert.example.com/' }), [/^spec.conversion.webhook.clientConfig.url: Invalid value: /])
  t.same(wrong({ service: { ...service, port: 65_536 } }), [
    `${at}.clientConfig.service.port: Invalid value: 65536: port is not valid: must be between 1 and 65535, inclusive`,
  ])
})

test('a webhook reads one version of reviews that the server writes', async (t) => {
  const wrong = (conversionReviewVersions: readonly string[], old?: readonly string[]) =>
    problems(byWebhook({ conversionReviewVersions }), old && definition(byWebhook({ conversionReviewVersions: old })))
  const known = (versions: readonly string[]) =>
    `${at}.conversionReviewVersions: Invalid value: ${JSON.stringify(versions)}: must include at least one of v1, v1beta1`
  t.same(wrong(['v1beta1']), [])
  t.same(wrong(['v2', 'v1']), [])
  t.same(wrong([]), [`${at}.conversionReviewVersions: Required value`])
  t.same(wrong(['v2']), [known(['v2'])])
  t.same(wrong(['v1', 'v2', 'v1']), [`${at}.conversionReviewVersions[2]: Invalid value: "v1": duplicate version`])
  t.match(wrong(['v1', '1']), [/^spec.conversion.webhook.conversionReviewVersions\[1\]: Invalid value: "1": /])
  t.same(wrong(['v2'], ['v1']), [known(['v2'])])
  t.same(wrong(['v2'], []), [known(['v2'])])
  t.same(wrong(['v2'], ['v2']), [], 'as it was before')
  t.same(wrong(['v3'], ['v2']), [], 'it had none before')
})

test('the certificates of a webhook may follow until its kind is established', async (t) => {
  const { certificate } = await openAuthority(testFolder(t), Date.now())
  const of = (caBundle: string) => byWebhook({ clientConfig: { service, caBundle } })
  const [right, wrong] = [of(base64(certificate)), of(base64('later'))]
  const refused = [
    `${at}.clientConfig.caBundle: Invalid value: "${base64('later')}": unable to load root certificates: unable to parse bytes as PEM block`,
  ]
  t.same(problems(wrong), [])
  t.same(problems(wrong, definition(right)), [])
  t.same(problems(right, definition(right, true)), [])
  t.same(problems(wrong, definition(right, true)), refused)
  t.same(problems(wrong, definition(byWebhook(), true)), refused)
  t.same(problems(wrong, definition(undefined, true)), refused)
  t.same(problems(wrong, definition(wrong, true)), [], 'an earlier version has accepted one')
})
