/** Which paths belong to the dashboard: `/ui` with all below it, and the certificate of the authority. */

export const dashboardRoot = '/ui'
export const dashboardApiRoot = `${dashboardRoot}/api/`
export const dashboardStreamPath = `${dashboardApiRoot}stream`
export const authorityPath = '/ca.crt'
/** The images of cards, and their list. */
export const cardsRoot = `${dashboardRoot}/cards/`
export const cardImageEnd = '.img.xz'

export function isDashboardPath(path: string): boolean {
  return path === dashboardRoot || path.startsWith(`${dashboardRoot}/`) || path === authorityPath
}

/** Whether the answer needs no identity: the files of the page, the login, cards for holders of a token, and the certificate of the authority. */
export function isPublicPath(path: string): boolean {
  return !path.startsWith(dashboardApiRoot) || path === `${dashboardApiRoot}login`
}

/** Whether the answer lasts: images are large. */
export function isCardImagePath(path: string): boolean {
  return path.startsWith(cardsRoot) && path.endsWith(cardImageEnd)
}

/** An address for the log: that of a card holds a token. */
export function withoutCardToken(url: string): string {
  return url.startsWith(cardsRoot) ? url.replace(/\?.*/s, '') : url
}
