/** What has the names and addresses of all controllers in it: the server certificate and the administrator's kubeconfig. */
import type { Log } from '../../daemon/log.ts'
import type { ControllerRegistry } from '../store/controllers.ts'

/** Calls `issueAgain` when a controller was added or removed, or has other names; not when one was restarted. */
export function followControllers(
  controllers: Pick<ControllerRegistry, 'all' | 'onChange'>,
  log: Pick<Log, 'error'>,
  issueAgain: () => Promise<void>,
): void {
  const present = () =>
    JSON.stringify(
      controllers
        .all()
        .map(({ apiServer, hosts }) => [apiServer, ...[...hosts].sort()])
        .sort(),
    )
  let issuedFor = present()
  controllers.onChange(() => {
    const now = present()
    if (now === issuedFor) return
    issuedFor = now
    issueAgain().catch((error: unknown) => log.error('Names of all controllers not in the certificate', { error }))
  })
}
