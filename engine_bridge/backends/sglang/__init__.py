"""SGLang: Ling-3.0-flash on a DGX Spark, and any other model that SGLang serves."""
