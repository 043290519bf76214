/** What is wrong with a webhook configuration (pkg/apis/admissionregistration/validation/validation.go). */
import type { MatchCondition, Webhook, WebhookClientConfig, WebhookRule } from '../admission/webhook.ts'
import { dnsSubdomainProblem, qualifiedNameProblem } from '../names.ts'
import { duplicate, invalid, notSupported, type Problem, required } from '../problem.ts'
import { problemsWith } from './metadata-validation.ts'
import { repeatedPlaces } from './repeated.ts'
import { selectorProblems } from './scheduling-validation.ts'

/** Problems of the webhooks of one configuration, with their defaults. Expressions are compiled, and so checked, elsewhere. */
export function webhooksProblems(
  webhooks: readonly Webhook[] = [],
  isMutating: boolean,
  old?: readonly Webhook[],
): readonly Problem[] {
  const hasNewConditions = old === undefined || !sameConditions(webhooks, old)
  const seen = new Set<string>()
  return webhooks.flatMap((webhook, index) => {
    const field = `webhooks[${index}]`
    const isRepeated = seen.has(webhook.name)
    seen.add(webhook.name)
    return [
      ...webhookProblems(field, webhook, isMutating),
      ...(hasNewConditions ? conditionProblems(`${field}.matchConditions`, webhook.matchConditions ?? []) : []),
      ...(isRepeated ? [duplicate(`${field}.name`, webhook.name)] : []),
    ]
  })
}

function webhookProblems(field: string, webhook: Webhook, isMutating: boolean): readonly Problem[] {
  const { timeoutSeconds = 10, reinvocationPolicy, admissionReviewVersions = [] } = webhook
  return [
    ...nameProblems(`${field}.name`, webhook.name),
    ...oneOfProblems(`${field}.sideEffects`, webhook.sideEffects, ['None', 'NoneOnDryRun'], true),
    ...versionProblems(`${field}.admissionReviewVersions`, admissionReviewVersions),
    ...(webhook.rules ?? []).flatMap((rule, index) => webhookRuleProblems(`${field}.rules[${index}]`, rule)),
    ...oneOfProblems(`${field}.failurePolicy`, webhook.failurePolicy, ['Fail', 'Ignore']),
    ...oneOfProblems(`${field}.matchPolicy`, webhook.matchPolicy, ['Equivalent', 'Exact']),
    ...(isMutating ? oneOfProblems(`${field}.reinvocationPolicy`, reinvocationPolicy, ['IfNeeded', 'Never']) : []),
    ...(timeoutSeconds < 1 || timeoutSeconds > 30
      ? [invalid(`${field}.timeoutSeconds`, timeoutSeconds, 'the timeout value must be between 1 and 30 seconds')]
      : []),
    ...selectorProblems(`${field}.namespaceSelector`, webhook.namespaceSelector),
    ...selectorProblems(`${field}.objectSelector`, webhook.objectSelector),
    ...clientProblems(`${field}.clientConfig`, webhook.clientConfig),
  ]
}

/** Whether no condition was changed: then those that an earlier version accepted stay (ignoreValidatingWebhookMatchConditions). */
export function sameConditions(webhooks: readonly Webhook[], old: readonly Webhook[]): boolean {
  const textOf = (all: readonly Webhook[]) =>
    JSON.stringify(
      all.map(({ matchConditions = [] }) => matchConditions.map(({ name, expression }) => [name, expression])),
    )
  return webhooks.length === old.length && textOf(webhooks) === textOf(old)
}

const mostConditions = 64

/** Problems of `matchConditions`, except those of their expressions. */
export function conditionProblems(field: string, conditions: readonly MatchCondition[]): readonly Problem[] {
  const many = `Too many: ${conditions.length}: must have at most ${mostConditions} items`
  const places = repeatedPlaces(conditions.map(({ name }) => name))
  return [
    ...(conditions.length > mostConditions
      ? [{ field, reason: 'FieldValueTooMany' as const, message: many }]
      : conditions.flatMap(({ name, expression }, index) => [
          ...(expression.trim() === '' ? [required(`${field}[${index}].expression`)] : []),
          ...(name === ''
            ? [required(`${field}[${index}].name`)]
            : problemsWith(`${field}[${index}].name`, name, qualifiedNameProblem)),
          ...(name !== '' && places.has(index) ? [duplicate(`${field}[${index}].name`, name)] : []),
        ])),
  ]
}

function nameProblems(field: string, name: string): readonly Problem[] {
  if (name === '') return [required(field)]
  const wrong = problemsWith(field, name, dnsSubdomainProblem)
  if (wrong.length > 0 || name.split('.').length >= 3) return wrong
  return [invalid(field, name, 'should be a domain with at least three segments separated by dots')]
}

function oneOfProblems(
  field: string,
  value: string | undefined,
  words: readonly string[],
  isRequired = false,
): readonly Problem[] {
  if (value === undefined) return isRequired ? [required(field, `must specify one of ${words.join(', ')}`)] : []
  return words.includes(value) ? [] : [notSupported(field, value, words)]
}

function versionProblems(field: string, versions: readonly string[]): readonly Problem[] {
  if (versions.length === 0) return [required(field, 'must specify one of v1')]
  const places = repeatedPlaces(versions)
  const repeated = versions.flatMap((version, index) =>
    places.has(index) ? [duplicate(`${field}[${index}]`, version)] : [],
  )
  if (versions.includes('v1')) return repeated
  return [...repeated, invalid(field, versions, 'must include at least one of v1')]
}

const operations = ['*', 'CREATE', 'UPDATE', 'DELETE', 'CONNECT']
const scopes = ['*', 'Cluster', 'Namespaced']

/** With its defaults. */
export function webhookRuleProblems(field: string, rule: WebhookRule): readonly Problem[] {
  return [
    ...listProblems(`${field}.operations`, rule.operations),
    ...(rule.operations ?? []).flatMap((operation, index) =>
      operations.includes(operation) ? [] : [notSupported(`${field}.operations[${index}]`, operation, operations)],
    ),
    ...listProblems(`${field}.apiGroups`, rule.apiGroups),
    ...listProblems(`${field}.apiVersions`, rule.apiVersions),
    ...emptyProblems(`${field}.apiVersions`, rule.apiVersions),
    ...resourceProblems(`${field}.resources`, rule.resources),
    ...oneOfProblems(`${field}.scope`, rule.scope, scopes),
  ]
}

/** A star stands alone. */
function listProblems(field: string, values: readonly string[] = []): readonly Problem[] {
  if (values.length === 0) return [required(field)]
  if (!values.includes('*') || values.length === 1) return []
  const what = field.slice(field.lastIndexOf('.') + 1)
  return [
    invalid(field, values, `if '*' is present, must not specify other ${what === 'apiGroups' ? 'API groups' : what}`),
  ]
}

function emptyProblems(field: string, values: readonly string[] = []): readonly Problem[] {
  return values.flatMap((value, index) => (value === '' ? [required(`${field}[${index}]`)] : []))
}

function resourceProblems(field: string, values: readonly string[] = []): readonly Problem[] {
  if (values.length === 0) return [required(field)]
  const all = values.includes('*/*') && values.length > 1
  return [
    ...emptyProblems(field, values),
    ...(all ? [invalid(field, values, "if '*/*' is present, must not specify other resources")] : []),
  ]
}

/** Problems of the client of a webhook, for admission or for conversion. */
export function clientProblems(field: string, { url, service }: WebhookClientConfig): readonly Problem[] {
  if ((url === undefined) === (service === undefined)) {
    return [required(field, 'exactly one of url or service is required')]
  }
  if (url !== undefined) return urlProblems(`${field}.url`, url)
  const { name = '', namespace = '', path, port = 443 } = service ?? {}
  return [
    ...(name === '' ? [required(`${field}.service.name`, 'service name is required')] : []),
    ...(namespace === '' ? [required(`${field}.service.namespace`, 'service namespace is required')] : []),
    ...(port < 1 || port > 65_535
      ? [invalid(`${field}.service.port`, port, 'port is not valid: must be between 1 and 65535, inclusive')]
      : []),
    ...pathProblems(`${field}.service.path`, path),
  ]
}

/** An empty one is the root; one slash at the end is allowed (ValidateWebhookService in pkg/util/webhook/validation.go of apiserver). */
function pathProblems(field: string, path = ''): readonly Problem[] {
  if (path === '' || path === '/') return []
  if (!path.startsWith('/')) return [invalid(field, path, "must start with a '/'")]
  const segments = path.slice(1).replace(/\/$/, '').split('/')
  return segments.flatMap((segment, index) => {
    if (segment === '') return [invalid(field, path, `segment[${index}] may not be empty`)]
    const problem = dnsSubdomainProblem(segment)
    return problem === undefined ? [] : [invalid(field, path, `segment[${index}]: ${problem}`)]
  })
}

/** As of RFC 3986, in as far as a webhook may have it. */
const urlForm = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?$/i
const form = '; desired format: https://host[/path]'

function urlProblems(field: string, url: string): readonly Problem[] {
  const [, scheme, authority, , query, fragment] = urlForm.exec(url) ?? []
  if (scheme === undefined || authority === undefined || /[\s\\]/.test(url)) {
    return [required(field, `url must be a valid URL: ${JSON.stringify(url.slice(0, 100))}${form}`)]
  }
  const host = authority.slice(authority.lastIndexOf('@') + 1)
  return [
    ...(scheme.toLowerCase() === 'https'
      ? []
      : [invalid(field, scheme, `'https' is the only allowed URL scheme${form}`)]),
    ...(host === '' ? [invalid(field, host, `host must be specified${form}`)] : []),
    ...(authority.includes('@') ? [invalid(field, '', 'user information is not permitted in the URL')] : []),
    ...(fragment ? [invalid(field, fragment, 'fragments are not permitted in the URL')] : []),
    ...(query ? [invalid(field, query, 'query parameters are not permitted in the URL')] : []),
  ]
}
