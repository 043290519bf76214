/** Machines that wait for an approval of their certificate request. */
import type { RequestCard } from '../../api/dashboard/dashboard-messages.ts'
import { ago } from '../../api/dashboard/view-words.ts'
import { callApi, mergePatchType } from './api.ts'
import { Action } from './dialog.tsx'
import { useFleet, useNow } from './fleet-stream.ts'
import { useMay } from './hooks.ts'

const group = 'certificates.k8s.io'
/** To approve a request also needs the verb `approve` on the signer of nodes' certificates, or on all of its domain. */
const onSigner = { verb: 'approve', group, resource: 'signers' }

export function WaitingMachines() {
  const { fleet } = useFleet()
  const requests = [...fleet.requests.values()]
  if (requests.length === 0) return null
  return (
    <section class="waiting" aria-label="Machines that wait for approval">
      {requests.map((request) => (
        <Waiting key={request.name} request={request} />
      ))}
    </section>
  )
}

function Waiting({ request }: { readonly request: RequestCard }) {
  const now = useNow()
  const mayPatch = useMay({ verb: 'patch', group, resource: 'certificatesigningrequests', subresource: 'approval' })
  const mayUseSigner = useMay({ ...onSigner, name: 'kubernetes.io/kube-apiserver-client-kubelet' })
  const mayUseDomain = useMay({ ...onSigner, name: 'kubernetes.io/*' })
  const { name, node, requester, at } = request
  return (
    <p class="notice warn">
      <span>
        <strong>{node}</strong> waits for approval. {requester} asked {ago(at, now)}.
      </span>
      {mayPatch && (mayUseSigner || mayUseDomain) && (
        <span class="buttons">
          <Action
            name="Approve"
            title={`Approve ${node}?`}
            question={`The machine gets a certificate for the name ${node} and joins the fleet. Approve only if you expect this machine.`}
            act={() => decide(name, 'Approved')}
          />
          <Action
            name="Deny"
            title={`Deny ${node}?`}
            question="The machine does not join with this request."
            act={() => decide(name, 'Denied')}
            isDangerous
          />
        </span>
      )}
    </p>
  )
}

function decide(name: string, type: 'Approved' | 'Denied'): Promise<unknown> {
  const condition = { type, status: 'True', reason: 'Dashboard', message: `${type} on the dashboard` }
  return callApi('PATCH', `/apis/${group}/v1/certificatesigningrequests/${encodeURIComponent(name)}/approval`, {
    type: mergePatchType,
    body: { status: { conditions: [condition] } },
  })
}
