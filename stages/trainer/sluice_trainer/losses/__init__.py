"""Policy-gradient losses over a step's micro-batches.

For a datum with sampled tokens t (mask True), let p_t be the logprob under the weights being
trained, b_t the behaviour logprob, A_t the advantage (already scaled by data / N), and
r_t = exp(p_t - b_t). c is clip, from lo = clip_low to hi = clip_high; sg is stop-gradient.
The loss of a token is

    ppo                  -min(r_t A_t, c(r_t) A_t)            Schulman et al. 2017, with the
                         asymmetric bounds of DAPO, Yu et al. 2025
    importance_sampling  -r_t A_t
    cispo                -sg(c(r_t)) A_t p_t                  MiniMax-M1, 2025
    gspo                 -min(s A_t, c(s) A_t), s = exp(mean over the datum of p_t - b_t)
                         Zheng et al. 2025: one ratio for the whole sequence

and on top of each

    kl                   + kl * (exp(d_t) - d_t - 1), d_t = ref_t - p_t: an estimate of
                         KL(policy || reference) that is never below 0 (Schulman 2020, "k3")

A correction weighs a token's loss (not its KL) by how far the sampler's logprobs are from
the trainer's own of the same weights, q_t, with w_t = exp(q_t - b_t) and the ratio then
taken against q_t: r_t = exp(p_t - q_t). `Truncate(C)` weighs by min(w, C), `MaskOutside(lo,
hi)` by w where it lies within and 0 elsewhere; by token, or by sequence with the product of
the w_t (its logarithm is a sum). See Yao et al. 2025 on truncated importance sampling.

A datum's loss is the sum or the mean of its tokens' (the batch says which); a micro-batch's
is the mean over its data. Since the advantages hold data / N, the losses of a step's
micro-batches add up to the mean over N, however they were packed. KL is not in the
advantages, so it is multiplied by the micro-batch's scale here.

`numpy_reference` computes loss and gradient by hand, datum by datum; `autodiff` computes the
loss on padded arrays for jax and torch, which derive it themselves. They share no code.
"""

from sluice_trainer.losses.spec import LossSpec, MaskOutside, Truncate

__all__ = ["LossSpec", "MaskOutside", "Truncate"]
