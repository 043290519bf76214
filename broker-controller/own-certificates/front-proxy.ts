/** What this controller shows to extension servers: a certificate of the front proxy's authority. Made when it is first needed. */
import { join } from 'node:path'
import { type Authority, dayMs } from '../../certs/authority.ts'
import { openFrontProxyAuthority } from '../../certs/front-proxy.ts'
import { type Issued, issueFrontProxyClient } from '../../certs/issue.ts'
import type { Clock } from '../../daemon/clock.ts'
import { authorityFolderName } from '../data-directory/data-directory.ts'

export interface FrontProxy {
  /** Rejects where its file cannot be read, and while the clock is wrong and there is none yet. */
  authority(): Promise<Authority>
  /** A client certificate that is valid for months. */
  client(): Promise<Issued>
  /** Reads the folder of the authority again with the next use. */
  reload(): void
}

/** A certificate is valid for a year. */
const renewedAfterMs = 120 * dayMs

type Shown = { readonly issued: Issued; readonly atMs: number }
type Opened = { readonly authority: Authority; readonly atMs: number }

export function frontProxy({ dataDir, clock }: { readonly dataDir: string; readonly clock: Clock }): FrontProxy {
  const folder = join(dataDir, authorityFolderName)
  let opening: Promise<Opened> | undefined
  let shown: Shown | undefined
  const isOf = ({ atMs }: { readonly atMs: number }) => Math.abs(clock.wallMs() - atMs) < renewedAfterMs
  const open = async (): Promise<Opened> => {
    const atMs = clock.wallMs()
    return { authority: await openFrontProxyAuthority(folder, atMs), atMs }
  }
  const opened = async () => {
    opening ??= open()
    const own = opening
    try {
      const found = await own
      if (isOf(found)) return found.authority
    } catch (error) {
      if (opening === own) opening = undefined
      throw error
    }
    // Its certificate may have come near its end.
    if (opening === own) opening = open()
    return (await opening).authority
  }
  return {
    authority: opened,
    async client() {
      const authority = await opened()
      if (shown === undefined || !isOf(shown)) {
        const nowMs = clock.wallMs()
        shown = { issued: issueFrontProxyClient(authority, { nowMs }), atMs: nowMs }
      }
      return shown.issued
    },
    reload() {
      opening = undefined
      shown = undefined
    },
  }
}
