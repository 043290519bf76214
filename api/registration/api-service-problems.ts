/** What is wrong with an APIService (kube-aggregator, pkg/apis/apiregistration/validation/validation.go). */
import { dns1035LabelProblem, dnsSubdomainProblem } from '../names.ts'
import { invalid, notSupported, type Problem, required } from '../problem.ts'
import { portNumberProblems } from '../validation/endpoints-validation.ts'
import { problemsWith } from '../validation/metadata-validation.ts'
import { type APIService, type APIServiceReference, type APIServiceSpec, registrationName } from './api-service.ts'

const highestGroupPriority = 20_000
const highestVersionPriority = 1_000

/** Its name and its spec. */
export function apiServiceProblems({ metadata: { name = '' }, spec }: APIService): readonly Problem[] {
  const { group = '', version = '' } = spec
  const wanted = registrationName({ group, version })
  const ofName = `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(wanted)}`
  return [
    ...(name === wanted ? [] : [invalid('metadata.name', name, ofName)]),
    ...groupProblems(group, version),
    ...problemsWith('spec.version', version, dns1035LabelProblem),
    ...priorityProblems('groupPriorityMinimum', spec.groupPriorityMinimum, highestGroupPriority),
    ...priorityProblems('versionPriority', spec.versionPriority, highestVersionPriority),
    ...(spec.service === undefined ? localProblems(spec) : remoteProblems(spec.service, spec)),
  ]
}

function groupProblems(group: string, version: string): readonly Problem[] {
  if (group !== '') return problemsWith('spec.group', group, dnsSubdomainProblem)
  const detail = 'only v1 may have an empty group and it better be legacy kube'
  return version === 'v1' ? [] : [required('spec.group', detail)]
}

function priorityProblems(name: string, priority: number, highest: number): readonly Problem[] {
  if (priority > 0 && priority <= highest) return []
  return [invalid(`spec.${name}`, priority, `must be positive and less than ${highest}`)]
}

function localProblems({ caBundle = '', insecureSkipTLSVerify = false }: APIServiceSpec): readonly Problem[] {
  const bytes = `${Buffer.from(caBundle, 'base64').length} bytes`
  return [
    ...(caBundle === '' ? [] : [invalid('spec.caBundle', bytes, 'local APIServices may not have a caBundle')]),
    ...(insecureSkipTLSVerify
      ? [invalid('spec.insecureSkipTLSVerify', true, 'local APIServices may not have insecureSkipTLSVerify')]
      : []),
  ]
}

function remoteProblems(
  { namespace = '', name = '', port = 443 }: APIServiceReference,
  { caBundle = '', insecureSkipTLSVerify = false }: APIServiceSpec,
): readonly Problem[] {
  const wrongPort = portNumberProblems('spec.service.port', port)
  return [
    ...(namespace === '' ? [required('spec.service.namespace')] : []),
    ...(name === '' ? [required('spec.service.name')] : []),
    ...(wrongPort.length === 0
      ? []
      : [invalid('spec.service.port', port, 'port is not valid: must be between 1 and 65535, inclusive')]),
    ...(insecureSkipTLSVerify && caBundle !== ''
      ? [invalid('spec.insecureSkipTLSVerify', true, 'may not be true if caBundle is present')]
      : []),
  ]
}

const statuses = ['True', 'False', 'Unknown']

/** Problems of a write to the status of an APIService. */
export function apiServiceStatusProblems({ status }: APIService): readonly Problem[] {
  return (status?.conditions ?? []).flatMap((condition, index) =>
    statuses.includes(condition.status)
      ? []
      : [notSupported(`status.conditions[${index}].status`, condition.status, statuses)],
  )
}
