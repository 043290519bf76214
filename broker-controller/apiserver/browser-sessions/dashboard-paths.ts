/** Which paths belong to the dashboard: `/ui` with all below it, and the certificate of the authority. */

export const dashboardRoot = '/ui'
export const dashboardApiRoot = `${dashboardRoot}/api/`
export const dashboardStreamPath = `${dashboardApiRoot}stream`
export const authorityPath = '/ca.crt'

export function isDashboardPath(path: string): boolean {
  return path === dashboardRoot || path.startsWith(`${dashboardRoot}/`) || path === authorityPath
}

/** Whether the answer needs no identity: the files of the page, the login, and the certificate of the authority. */
export function isPublicPath(path: string): boolean {
  return !path.startsWith(dashboardApiRoot) || path === `${dashboardApiRoot}login`
}
