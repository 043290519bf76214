/** The user and groups that a service account is (staging/src/k8s.io/apiserver/pkg/authentication/serviceaccount/util.go). */
import { dnsLabelProblem, dnsSubdomainProblem } from '../names.ts'

const userPrefix = 'system:serviceaccount:'
export const serviceAccountsGroup = 'system:serviceaccounts'
/** The account of pods that name none; a controller keeps it in every namespace. */
export const defaultAccountName = 'default'
/** The ConfigMap with the authorities of this API, which a controller keeps in every namespace. */
export const rootCertificatesName = 'kube-root-ca.crt'
export const certificateKey = 'ca.crt'

export function serviceAccountUser(namespace: string, name: string): string {
  return `${userPrefix}${namespace}:${name}`
}

/** Without `system:authenticated`, which every authenticated user has. */
export function serviceAccountGroups(namespace: string): readonly string[] {
  return [serviceAccountsGroup, `${serviceAccountsGroup}:${namespace}`]
}

/** The service account that a user name stands for; undefined when it stands for none. */
export function serviceAccountOf(user: string): { readonly namespace: string; readonly name: string } | undefined {
  if (!user.startsWith(userPrefix)) return undefined
  const [namespace = '', name = '', ...more] = user.slice(userPrefix.length).split(':')
  const isNamed =
    more.length === 0 && dnsLabelProblem(namespace) === undefined && dnsSubdomainProblem(name) === undefined
  return isNamed ? { namespace, name } : undefined
}

/** Whose share a user takes from. Who may create one service account in a namespace may create any number: they are one. */
export function ownerOf(user: string): string {
  const account = serviceAccountOf(user)
  return account === undefined ? user : `system:serviceaccounts:${account.namespace}`
}
